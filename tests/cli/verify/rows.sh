# `sheaf verify --rows`: finished rows are computed again, alone; a row that was changed is found.
. "$CASE/../prelude"
documents 4 30
sheaf run docs -p x -n 8 -q -o out.jsonl
sheaf verify --rows out.jsonl docs -p x -n 8 -q
jq -c 'if .id == "docs/0002.txt" then .text += "!" else . end' out.jsonl > changed.jsonl
sheaf verify --rows changed.jsonl docs -p x -n 8 -q
rm docs/0004.txt
sheaf verify --rows out.jsonl docs -p x -n 8 -q
sheaf verify --rows gone.jsonl docs -p x -n 8 -q
