# `sheaf verify`: each device against the float64 reference; the reference against itself is exact.
. "$CASE/../prelude"
documents 1 120
isas=$("$SHEAF" run docs -p x --isa none -n 4 2>&1 | sed -n 's/.*this machine has //p' | tr -d ,)
for model in llama qwen2 gemma3; do
    for isa in $isas; do
        sheaf verify docs/0001.txt --model "$TINY/tiny-$model.gguf" --positions 64 --isa $isa --json -q |
            jq -c --arg name "$model" '[$name, .positions, .not_finite, .relative_l2 < 0.03, .clear == .clear_equal]'
    done | sort -u
done
sheaf verify docs/0001.txt --positions 64 --kv-dtype int8 --json -q | jq -c '[.positions, .relative_l2 < 0.05]'
sheaf verify docs/0001.txt --positions 32 --device reference --json -q | jq -c '[.relative_l2, .argmax_equal]'
sheaf verify docs/0001.txt --positions 32 -q | cut -d ' ' -f 1
cat docs/0001.txt | sheaf verify --positions 16 --json -q | jq .positions
sheaf verify gone.txt -q
printf x > x.txt
sheaf verify x.txt -q
