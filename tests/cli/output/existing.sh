# An existing output is refused with its row count and stays as it was; --force replaces it.
. "$CASE/../prelude"
documents 3 20
sheaf run docs -p x -n 4 -q -o out.jsonl
cp out.jsonl kept.jsonl
sheaf run docs -p x -n 4 -q -o out.jsonl
cmp out.jsonl kept.jsonl
sheaf run docs/0001.txt -p x -n 4 -q -o out.jsonl --force
wc -l < out.jsonl
printf 'precious notes\n' > notes.txt
sheaf run docs -p x -n 4 -q -o notes.txt
sheaf run docs -p x -n 4 -q -o notes.txt --resume
cat notes.txt
: > empty.jsonl
sheaf run docs -p x -n 4 -q -o empty.jsonl
wc -l < empty.jsonl
mkdir folder
sheaf run docs -p x -n 4 -q -o folder
sheaf run docs -p x -n 4 -q -o missing/out.jsonl
ls
