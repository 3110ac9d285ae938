# --prompts asks many questions over each document: ids document#question, and the document's KV is
# computed once and shared.
. "$CASE/../prelude"
documents 2 100
cat > questions.jsonl <<'END'
{"id":"who","prompt":"Who signed?"}

{"id":"when","prompt":"When?"}
{"id":"why","prompt":"Why was it signed?"}
END
printf '{"id":7,"text":"a numbered document of a few words"}\n' > more.jsonl
sheaf run docs more.jsonl --prompts questions.jsonl -n 6 -q -o out.jsonl
brief out.jsonl
rows out.jsonl | jq -c .index | tr '\n' ' ' && echo
python3 "$CASE/../check_schema.py" row out.jsonl
# Whole pages of 64 tokens are shared: of each document all but one question found it there.
jq -cs 'group_by(.source)[] | [.[0].source.path, (map(select(.work.cached > .tokens.document - 64 and .work.cached > 0)) | length)]' out.jsonl
# A question alone gives the same text: sharing changes nothing.
sheaf run docs -p '{document}

When?' -n 6 -q | rows | jq -r .text > left
rows out.jsonl | jq -r 'select(.id | type == "string" and startswith("docs/") and endswith("#when")) | .text' > right
same 'a question alone' left right
refused() {
    printf '%s\n' "$1" > bad.jsonl
    sheaf run docs --prompts bad.jsonl -q
}
refused '{"id":"a"}'
refused '{"id":"a","prompt":"x"}
{"id":"a","prompt":"y"}'
refused ''
refused '{"id":"a","prompt":'
