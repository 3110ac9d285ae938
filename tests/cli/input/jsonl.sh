# JSONL: ids of both kinds and none, prompts and options of the line, other keys carried along.
. "$CASE/../prelude"
cat > in.jsonl <<'END'
{"id":"text","text":"some text"}
{"id":17,"text":"some text","origin":"archive","year":1984}
{"id":1234567,"text":"some text"}
{"id":1.5,"text":"some text"}
{"text":"some text"}

{"id":"own","text":"some text","prompt":"Count: {document}","options":{"max-tokens":3,"ignore-eos":true}}
{"id":"messages","messages":[{"role":"user","content":"hello"},{"role":"assistant","content":"good day"},{"role":"user","content":[{"type":"text","text":"again"}]}]}
{"id":"nul","text":"a\u0000b"}
{"id":"é\n\"","text":"umlaut"}
END
sheaf run in.jsonl -p 'Summarize.' -n 8 -q -o out.jsonl
rows out.jsonl | jq -c '[.index, .id, .source.line, .status, .input // {}]'
rows out.jsonl | jq -c 'select(.id == "own") | [.tokens.completion, .finish_reason]'
grep -c '"id":17,' out.jsonl
echo '{"id":12345678901234567,"text":"x"}' > big.jsonl
sheaf run big.jsonl -p x -n 4 -q | grep -o '"id":[0-9]*'
python3 "$CASE/../check_schema.py" row out.jsonl
# The line's own prompt is the same as -p with it, whatever -p says.
printf '%s' 'some text' > text.txt
sheaf run text.txt -p 'Count: {document}' -n 3 --ignore-eos -q | jq -r .text > left
jq -r 'select(.id == "own") | .text' out.jsonl > right
same 'own prompt' left right
# The same lines from a pipe, compressed or not; lines without an id are numbered.
sheaf run - --stdin-format jsonl -p 'Summarize.' -n 8 -q < in.jsonl > piped.jsonl
gzip -c in.jsonl | sheaf run --stdin-format jsonl -p 'Summarize.' -n 8 -q > unzipped.jsonl
for way in piped unzipped; do
    rows out.jsonl | jq -c 'del(.id, .source)' > left
    rows $way.jsonl | jq -c 'del(.id, .source)' > right
    same $way left right
done
rows piped.jsonl | jq -c 'select(.source.line == 5) | [.id, .source]'
python3 "$CASE/../check_schema.py" row piped.jsonl
