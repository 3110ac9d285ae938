# The output's disk is full: exit status 3 and one line that says so, for each kind of output.
. "$CASE/../prelude"
documents 3 20
sheaf run docs -p x -n 4 -q > /dev/full
sheaf run docs -p x -n 4 -q -o /dev/full
sheaf run docs -p x -n 4 -q --format text > /dev/full
sheaf run docs gone.txt -p x -n 4 -q -o out.jsonl --errors /dev/full
# A file that may not grow: the row that did not fit is taken back, and resuming completes it.
documents 40 20 many
sheaf run many -p x -n 4 -q -o whole.jsonl
(
    trap '' XFSZ
    ulimit -f 8
    sheaf run many -p x -n 4 -q -o limited.jsonl
)
tail -c 1 limited.jsonl | od -An -c
[ "$(wc -l < limited.jsonl)" -lt 40 ] && echo "some rows are there"
sheaf run many -p x -n 4 -q -o limited.jsonl --resume
rows whole.jsonl > left && rows limited.jsonl > right && same rows left right
