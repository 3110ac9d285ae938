# Each broken line is an error row that names the line; the lines around it are computed.
. "$CASE/../prelude"
printf '%s\n' '{"id":"good","text":"fine"}' '{"id":"cut","text":' 'not json' '[1,2]' '"text"' '{}' \
    '{"id":["a"],"text":"x"}' '{"id":"kind","text":5}' '{"id":"both","text":"x","messages":[]}' \
    '{"id":"blank","text":"  "}' '{"id":"lone","text":"\ud800"}' '{"id":"nan","text":"x","n":NaN}' \
    '{"id":"role","messages":[{"content":"x"}]}' '{"id":"image","messages":[{"role":"user","content":[{"type":"image_url"}]}]}' \
    '{"id":"options","text":"x","options":3}' '{"id":"o2","text":"x","options":{"temperature":"hot"}}' \
    '{"id":"o3","text":"x","options":{"output":"/etc/passwd"}}' '{"id":"o4","text":"x","options":{"max-tokens":-1}}' \
    '{"id":"o5","text":"x","options":{"temp":1}}' '{"id":"twice","id":"thrice","text":"x"}' \
    '{"id":"good too","text":"fine"}' > in.jsonl
python3 -c 'print("[" * 100000)' >> in.jsonl
printf '{"id":"torn","text":"no newline at the end"}' >> in.jsonl
sheaf run in.jsonl -p x -n 4 -q -o out.jsonl
rows out.jsonl | jq -c '[.id, .error.code // "ok", .error.message]'
python3 "$CASE/../check_schema.py" row out.jsonl
