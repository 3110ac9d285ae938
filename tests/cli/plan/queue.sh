# `sheaf plan`: the whole queue without computing; its token counts are those of the run.
. "$CASE/../prelude"
documents 5 60
documents 1 400 long
echo again > docs/again.txt
options="docs long gone.txt docs/again.txt -p Summarize. -n 9 --price-per-hour 2"
sheaf plan $options --json -q > plan.json
jq -c '[.documents, .requests, .failed, .skipped, .errors, .output_tokens_max, .shortened]' plan.json
jq -c '.longest[] | [.id, .too_long]' plan.json
jq -c '[.seconds > 0, .steps > 0, .cost > 0, .stated_bytes > 0, .cached_tokens + .computed_tokens == .prompt_tokens]' plan.json
sheaf run $options -q -o out.jsonl --summary s.json
jq -c '[.document_tokens, .prompt_tokens]' plan.json > left
jq -cs 'map(select(.status == "ok")) | [(map(.tokens.document) | add), (map(.tokens.prompt) | add)]' out.jsonl > right
same 'token counts' left right
sheaf plan $options -q | sed 's/  .*//' | grep . | sort -u
# Questions share their document's prefix.
printf '{"id":"a","prompt":"Who?"}\n{"id":"b","prompt":"Why?"}\n' > questions.jsonl
sheaf plan docs --prompts questions.jsonl -n 9 --json -q | jq -c '[.documents, .requests, .cached_tokens > 0]'
ls
