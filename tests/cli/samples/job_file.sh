# The job file of the samples, as it stands; the command line replaces what a tiny model cannot do.
here=$PWD
cd "$SAMPLES/.." || exit 1
"$SHEAF" run --config samples/job.yaml --model "$TINY/tiny-qwen2.gguf" --context 512 \
    --max-tokens 4 --output "$here/rows.jsonl" --quiet
status=$?
jq -s -c '[length, ([.[].status] | unique), ([.[].id] | sort | first)]' "$here/rows.jsonl"
exit $status
