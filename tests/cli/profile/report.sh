# `sheaf profile`: the report keeps to its schema, the trace to its format, and the work it counts step
# by step is what a run counts from its rows.
. "$CASE/../prelude"
[ "$SANITIZER" != thread ] || skip "measuring takes minutes under ThreadSanitizer: see once.sh"
documents 6 90
options="docs -p Summarize. -n 12 --ignore-eos --prefix-cache off --batch-tokens 64 --max-sequences 4"
sheaf profile $options --report report.json --trace trace.json -q > text
python3 "$CASE/../check_schema.py" profile report.json
python3 "$CASE/../profile_trace.py" trace.json
sed -n 's/^\(attention\|memory\|ceilings\): .*/\1/p' text
sheaf run $options -q -o out.jsonl --summary summary.json
jq -c '[.ops[] | select(.op == "attention").flops] | add' report.json > left
jq -c '.compute.attention_flops' summary.json > right
same 'attention, counted by steps and by rows' left right
matmuls='["qkv", "attention_out", "gate_up", "down", "logits"]'
jq -c --argjson ops "$matmuls" '[.ops[] | select(.op as $op | $ops | index($op)).flops] | add' report.json > left
jq -c '.compute.matmul_flops' summary.json > right
same 'matmuls, counted by steps and by rows' left right
jq -c '[.run.documents, .run.prompt_tokens]' report.json > left
jq -c '[.documents.done, .tokens.prompt]' summary.json > right
same documents left right
# Time is told apart, not made up: ops fill their phases, phases the run.
jq -c '[(.phases | map(.seconds) | add) as $phases | ([.ops[].seconds] | add) / $phases
        | . > 0.999 and . < 1.001] + [(.phases | map(.seconds) | add) <= .run.seconds]' report.json
jq -c '[.memory.peaks.kv_used >= .memory.peaks.kv_tokens, .memory.peaks.kv_contiguous > 0, (.steps | length) == .run.steps]' report.json
# Repeated beginnings are seen although the cache is off.
mkdir same && for i in 1 2 3; do cp docs/0001.txt same/$i.txt; done
sheaf profile same -p Summarize. -n 2 --prefix-cache off --json -q | jq -c '.run.repeated_tokens > .run.prompt_tokens / 4'
sheaf profile docs -p x --device reference
sheaf profile nothing.txt -p x -n 4 -q
ls
# As a page: the plots, and the report as data.
sheaf profile docs -p 'Summarize.' -n 4 -q --report page.html > page.txt 2> page.err
grep -c '<svg' page.html
sed -n 's,.*id="report">\(.*\)</script>.*,\1,p' page.html | jq -c '[.documents | length > 0, .[0].prefill_seconds > 0]'
grep -c 'http' page.html || true
# What cannot be written is known before anything is computed.
for option in --report --trace; do
    "$SHEAF" profile docs -p x -n 4 -q $option /nonexistent/file > out 2> err
    echo "exit $?: $(cat err)$(cat out)"
done
