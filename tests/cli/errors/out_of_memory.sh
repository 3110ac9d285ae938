# Error code out_of_memory: its row, and its neighbours' rows as they would be without it.
. "$CASE/../prelude"
# A document that the memory left to the process cannot hold, under a limit on its address space.
[ -z "$SANITIZER" ] || skip "sanitizers need the address space themselves"
echo 'the text before' > before.txt && echo 'the text after' > after.txt
truncate -s 250M large.txt
ulimit -v 250000
expect_error 'before.txt large.txt after.txt' 'before.txt after.txt' -p x --threads 1 --kv-memory 8M
