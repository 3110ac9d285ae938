# A finished --order input output whose resume is refused stays where it is.
. "$CASE/../prelude"
documents 3 20
sheaf run docs -p x -n 4 -q -o out.jsonl --order input
cp out.jsonl kept.jsonl
sheaf run docs -p y -n 4 -q -o out.jsonl --order input --resume
sheaf run docs -p x -n 4 -q -o out.jsonl --order input --resume --kv-memory 1
ls
cmp out.jsonl kept.jsonl
# New documents come to it.
documents 4 20
sheaf run docs -p x -n 4 -q -o out.jsonl --order input --resume
jq -c .id out.jsonl
ls
