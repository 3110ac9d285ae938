# Error code too_large: its row, and its neighbours' rows as they would be without it.
. "$CASE/../prelude"
# Larger than a document may be, and not read at all.
echo 'the text before' > before.txt && echo 'the text after' > after.txt
truncate -s 300M large.txt
expect_error 'before.txt large.txt after.txt' 'before.txt after.txt' -p x
