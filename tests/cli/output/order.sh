# --order input: the rows stand in the order of the inputs at the end, and OUT appears whole.
. "$CASE/../prelude"
documents 12 30
echo long > docs/0000.txt
cat > in.jsonl <<'END'
{"id":"late","text":"x","options":{"max-tokens":120,"ignore-eos":true}}
{"id":"soon","text":"x","options":{"max-tokens":1}}
END
sheaf run in.jsonl docs gone.txt -p x -n 6 -q -o sorted.jsonl --order input
jq .index sorted.jsonl | tr '\n' ' ' && echo
ls
sheaf run in.jsonl docs gone.txt -p x -n 6 -q -o log.jsonl
rows sorted.jsonl > left && rows log.jsonl > right && same rows left right
# An existing OUT is refused and kept; resuming it has nothing to do.
cp sorted.jsonl kept.jsonl
sheaf run in.jsonl docs gone.txt -p x -n 6 -q -o sorted.jsonl --order input
cmp sorted.jsonl kept.jsonl
sheaf run in.jsonl docs gone.txt -p x -n 6 -q -o sorted.jsonl --order input --resume --summary s.json
jq -c '[.documents.done, .documents.resumed]' s.json
cmp sorted.jsonl kept.jsonl && ls
# Interrupted, the rows are in the .part file; resuming goes on from there.
head -n 5 kept.jsonl > sorted.jsonl.part && rm sorted.jsonl
sheaf run in.jsonl docs gone.txt -p x -n 6 -q -o sorted.jsonl --order input --resume --summary s.json
jq -c '[.documents.done, .documents.failed, .documents.resumed]' s.json
jq .index sorted.jsonl | tr '\n' ' ' && echo
rows sorted.jsonl > left && same rows left right
