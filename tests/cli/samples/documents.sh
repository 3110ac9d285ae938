# Every sample document gets a row, whatever its kind; the model is too small for most of them.
"$SHEAF" run "$SAMPLES/documents" --model "$TINY/tiny-llama.gguf" --prompt 'Summarize.' \
    --max-tokens 4 --ignore-eos --too-long keep-ends --order input --output rows.jsonl --quiet
status=$?
jq -c '[.index, (.id | split("/") | last), .status, .finish_reason, .tokens.completion]' rows.jsonl
exit $status
