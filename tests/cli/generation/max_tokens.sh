# --max-tokens and --ignore-eos: the number is reached exactly, or the end token ends it before.
. "$CASE/../prelude"
documents 8 50
for count in 1 2 33; do
    sheaf run docs -p x -n $count --ignore-eos -q | jq -cs '[.[] | [.tokens.completion, .finish_reason]] | unique'
done
sheaf run docs -p x -n 200 -q -o out.jsonl
jq -cs 'map(select(.finish_reason == "stop" and .stop_string == null)) | [length > 0, all(.[]; .tokens.completion <= 200)]' out.jsonl
jq -cs 'map(select(.finish_reason == "length")) | all(.[]; .tokens.completion == 200 and ([.warnings[].code] == ["cut_at_max_tokens"]))' out.jsonl
# An end token is counted, and is not part of the text.
jq -r .text out.jsonl | grep -c '<|im_end|>' || true
