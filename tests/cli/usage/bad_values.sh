# A missing or impossible value is refused in one line that says what is possible; exit status 2.
refused() {
    "$SHEAF" run a.txt -p x "$@" > out 2> err < /dev/null
    echo "exit $?: $(head -n 1 err)"
    [ ! -s out ] || echo "something came out"
}
refused -n
refused --model
refused -n 0
refused -n -3
refused -n 12x
refused -n ''
refused --max-tokens=99999999999999999999
refused --temperature nan
refused --temperature inf
refused --temperature -1
refused --top-p 0
refused --top-p 1.5
refused --min-p 2
refused --seed -1
refused --repeat-penalty 0
refused --context 3
refused --threads 0
refused --threads many
refused --batch-tokens 65537
refused --max-sequences 0
refused --kv-memory 0
refused --kv-memory 101%
refused --kv-memory 5Q
refused --kv-memory -1G
refused --kv-memory 99999999T
refused --kv-dtype fp4
refused --matmul-dtype fp4
refused --too-long never
refused --format xml
refused --order random
SHEAF_MODEL="$TINY/tiny-llama.gguf" refused -n 4 --isa sse9 | sed 's/: this machine.*//'
refused --device tpu
refused --limit 0
refused --stop ''
refused --fail-on tired
refused --prefix-cache maybe
refused --speculate luck
refused --price-per-hour -1
refused -n ' 3'
refused -n +3
refused --top-p ' 0.5'
