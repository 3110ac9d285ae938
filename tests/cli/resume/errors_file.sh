# --errors holds the error rows that stand, however often a run was broken off and resumed.
. "$CASE/../prelude"
documents 2 20
run() {
    sheaf run docs gone lost -p x -n 4 -q -o out.jsonl --errors errors.jsonl "$@"
    brief errors.jsonl
}
run
# Broken off in the middle of an error row.
head -n 1 errors.jsonl | head -c 40 > torn && cat torn >> errors.jsonl
grep -v gone out.jsonl > left && mv left out.jsonl
run --resume
echo found > gone
run --resume --retry-errors
# Another file is not taken for one.
echo 'my notes' > errors.jsonl
sheaf run docs gone lost -p x -n 4 -q -o out.jsonl --errors errors.jsonl --resume
cat errors.jsonl
