# Of equal ids the first is computed, the others are error rows, in every order of completion.
. "$CASE/../prelude"
cat > in.jsonl <<'END'
{"id":"a","text":"the first"}
{"id":"a","text":"the second"}
{"id":1,"text":"number"}
{"id":"1","text":"text"}
{"id":"a","text":"the third"}
END
echo one > one.txt
sheaf run in.jsonl one.txt ./one.txt -p x -n 4 -q -o out.jsonl
rows out.jsonl | jq -c '[.index, .id, .status, .error.code]'
