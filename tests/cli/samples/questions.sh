# Several questions over one document: one row each, the document's pages shared.
"$SHEAF" run "$SAMPLES/documents/abstract.txt" --prompts "$SAMPLES/questions.jsonl" \
    --model "$TINY/tiny-llama.gguf" --too-long keep-head --max-tokens 4 --ignore-eos \
    --order input --output rows.jsonl --quiet
status=$?
jq -c '[(.id | split("/") | last), .status, .tokens.completion]' rows.jsonl
jq -s 'map(.work.cached > 0) | any' rows.jsonl
exit $status
