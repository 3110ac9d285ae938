# A pile longer than every queue between reader, engine and writer: each document has its row.
. "$CASE/../prelude"
seq 0 3499 | sed 's/.*/{"id":&,"text":"page &"}/' > in.jsonl
sheaf run in.jsonl -p x -n 1 -q -o out.jsonl
jq -s -c '[length, ([.[].id] | unique | length), all(.[]; .status == "ok")]' out.jsonl
# An output that fails ends such a run, whatever still waits.
sheaf run in.jsonl -p x -n 1 -q -o /dev/full
