# A document that does not fit the context: an error row with the numbers, or cut as --too-long says.
# Only the document is cut; what was kept is in the row, and the counts are exact.
. "$CASE/../prelude"
documents 1 200
printf 'short' > docs/short.txt
python3 -c 'print("ä€😀" * 300)' > docs/wide.txt
for policy in error keep-head keep-tail keep-ends; do
    echo "$policy"
    sheaf run docs -p 'Summarize.' -n 12 --context 128 --too-long $policy -q -o $policy.jsonl
    rows $policy.jsonl | jq -c '[.id, .error.code // "ok", .error.message // .kept, .tokens.document, .tokens.used, .tokens.prompt]'
    python3 "$CASE/../check_schema.py" row $policy.jsonl
    rows $policy.jsonl | jq -c 'select(.id == "docs/0001.txt" and .status == "ok") | .tokens.prompt + 12 == 128, .warnings[0]'
    "$SHEAF" plan docs -p 'Summarize.' -n 12 --context 128 --too-long $policy -q --show-prompt docs/wide.txt > shown
    iconv -f UTF-8 -t UTF-8 shown > /dev/null || echo "a character is cut"
done
# Nothing can be cut when the prompt alone is too long.
sheaf run docs/0001.txt -p "$(cat docs/0001.txt)" -n 12 --context 128 --too-long keep-head -q | jq -r .error.code
