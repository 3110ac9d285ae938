# .gz of a text, of JSONL, and on a pipe: the same as what they hold.
. "$CASE/../prelude"
documents 1 100
printf '{"id":"a","text":"first"}\n{"id":"b","text":"second"}\n' > lines.jsonl
gzip -k docs/0001.txt lines.jsonl
sheaf run docs/0001.txt lines.jsonl -p x -n 8 -q -o plain.jsonl
sheaf run docs/0001.txt.gz lines.jsonl.gz -p x -n 8 -q -o packed.jsonl
rows plain.jsonl | jq -c '[.text, .tokens.prompt]' > left
rows packed.jsonl | jq -c '[.text, .tokens.prompt]' > right
same content left right
rows packed.jsonl | jq -c '[.id, .source]'
sheaf run -p x -n 8 -q < docs/0001.txt.gz | jq -c '[.text, .tokens.prompt]' > piped
head -n 1 left > first && same pipe first piped
# A file that ends too early is an error row, its neighbour is not touched.
head -c 60 docs/0001.txt.gz > cut.txt.gz
sheaf run cut.txt.gz docs/0001.txt -p x -n 8 -q | rows | jq -c '[.id, .status, .error.code]'
