# --summary is JSON by its schema, and its numbers are the rows' numbers.
. "$CASE/../prelude"
documents 5 40
sheaf run docs gone.txt -p 'Summarize.' -n 7 --ignore-eos -q -o out.jsonl --summary s.json --price-per-hour 3.6
python3 "$CASE/../check_schema.py" summary s.json
jq -c '[.documents.done, .documents.failed, .documents.errors, .exit_code, .model.name, .machine.device]' s.json
jq -c '.tokens | [.prompt == .cached + .computed, .completion]' s.json
jq -s '[.[] | .tokens.prompt // 0] | add' out.jsonl > left && jq .tokens.prompt s.json > right && same 'prompt tokens' left right
jq -c '[.settings["max-tokens"], .settings.prompt, .settings.temperature, .settings["too-long"], .settings["batch-tokens"]]' s.json
sha256sum "$SHEAF_MODEL" | cut -d ' ' -f 1 > left && jq -r .model.sha256 s.json > right && same sha256 left right
jq -c '[(.slowest | length), .latency.latency_ms.max >= .latency.latency_ms.p50, .cost.total > 0]' s.json
jq -c '[.memory.peak_rss_bytes > 0, .memory.stated_bytes >= .memory.weights_bytes, .engine.kv_pages_peak > 0]' s.json
# The work of a run is counted: it does not depend on how it was batched, and doubles with the documents.
work() {
    sheaf run "$@" -p 'Summarize.' -n 7 --ignore-eos -q -o work.jsonl --force --summary work.json
    jq -c '.compute | [.matmul_flops, .attention_flops, .kv_bytes]' work.json
}
work docs > left && work docs --batch-tokens 16 --max-sequences 1 --prefix-cache off > right && same work left right
jq -c '.compute | [.matmul_flops > 0, .attention_flops > 0, .flops_per_second < .flops_per_second_ceiling, .bytes_per_second > 0, .bytes_per_second_ceiling > 0]' work.json
# Numbers that are not finite are null, and nothing computed is a summary too; one that cannot be written starts nothing.
sheaf run gone.txt -p x -n 7 -q --summary s.json > out
python3 "$CASE/../check_schema.py" summary s.json
sheaf run docs -p x -n 7 -q --summary no/where.json -o late.jsonl
ls late.jsonl 2> err || echo "nothing was started"
