# More documents than the window of documents that are put in order together, and more than the
# queues hold: each has its row, once.
. "$CASE/../prelude"
documents 2500 3
sheaf run docs -p x -n 1 -q -o out.jsonl
jq -s '[length, (map(.id) | unique | length), all(.[]; .status == "ok")]' -c out.jsonl
sheaf run docs -p x -n 1 -q -o out.jsonl --resume --summary s.json
jq .documents.resumed s.json
"$SHEAF" plan docs -p x -n 1 -q --json | jq -c '[.documents, .requests]'
