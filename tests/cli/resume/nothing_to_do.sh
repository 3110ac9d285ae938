# Resuming a finished run computes nothing and leaves the output byte for byte.
. "$CASE/../prelude"
documents 5 20
sheaf run docs -p x -n 4 -q -o out.jsonl
cp out.jsonl kept.jsonl
sheaf run docs -p x -n 4 -q -o out.jsonl --resume --summary s.json
cmp out.jsonl kept.jsonl && jq -c '[.documents.done, .documents.resumed, .engine.steps]' s.json
# What may differ between runs does not matter: threads, batch, cache, order.
sheaf run docs -p x -n 4 -q -o out.jsonl --resume --threads 1 --batch-tokens 7 --max-sequences 2 \
    --prefix-cache off --summary s.json
cmp out.jsonl kept.jsonl && jq -c '[.documents.done, .documents.resumed]' s.json
# A missing output is a new one.
sheaf run docs -p x -n 4 -q -o new.jsonl --resume
rows new.jsonl > left && rows kept.jsonl > right && same 'new output' left right
