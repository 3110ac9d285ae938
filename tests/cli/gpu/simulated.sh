# Whole jobs on simulated devices, through the driver's own interface and the kernels that ship: the
# reference's text, refusals with numbers, a device lost in the middle that loses no written row.
. "$CASE/../prelude"
[ -n "$FAKECUDA_LIBRARY" ] || skip "no CUDA kernels in this build"
mkdir driver
cp "$FAKECUDA_LIBRARY" driver/libcuda.so.1
export LD_LIBRARY_PATH=$PWD/driver
documents 3 12
options="docs -m $TINY/tiny-qwen2.gguf --no-chat-template -p x -n 4 -q"

# on SETTINGS NAME OPTION...
on() {
    settings=$1
    name=$2
    shift 2
    # shellcheck disable=SC2086
    FAKECUDA=$settings sheaf run $options --device cuda -o "$name" --force "$@"
}
contents_of() { jq -cS 'del(.timing, .work, .numerics, .fingerprint)' "$1" | sort; }

# shellcheck disable=SC2086
sheaf run $options --device reference -o reference
contents_of reference > left
for capability in 61 70 75 80 89; do
    on "capability=$capability" "cc$capability"
    contents_of "cc$capability" > right
    same "$capability, $(jq -r .numerics "cc$capability" | sort -u)" left right
done
on capability=80 batches --max-sequences 1 --batch-tokens 5
contents_of batches > right
same 'one at a time, in small chunks' left right
on capability=75 int8 --kv-dtype int8 && jq -r .numerics int8 | sort -u

refused() {
    # shellcheck disable=SC2086
    FAKECUDA=$1 "$SHEAF" run $options --device cuda -o refused --force ${2:-} 2> err > /dev/null
    echo "exit $?: $(head -n 1 err | sed 's/[0-9][0-9.]*/N/g')"
}
refused memory_bytes=8000000
refused capability=80 '--gpu-memory 4M'
refused capability=75 '--kv-dtype bf16'
refused capability=50
refused driver_version=11000
refused no_device=1

# The device's times of ops, and a plan that foretells none.
on capability=80 summed --summary summary.json
jq -c '.time | [.attention_share > 0, .matmul_share > 0, .attention_share + .matmul_share + .other_ops_share <= .computing_share * 1.001]' summary.json
# shellcheck disable=SC2086
FAKECUDA=capability=80 sheaf plan $options --device cuda | sed -n 's/^time *//p'
# shellcheck disable=SC2086
FAKECUDA=capability=80 sheaf plan $options --device cuda --json | jq -c '[.seconds, .cost, .steps]'

# Lost after some rows: they stay, the run says that it can be resumed, and is.
calls=600
FAKECUDA="capability=80,lost_call=$calls" "$SHEAF" run $options --device cuda -o lost --force --max-sequences 1 2> err
echo "exit $?"
grep -c 'device' err
rows_kept=$(wc -l < lost)
[ "$rows_kept" -gt 0 ] && [ "$rows_kept" -lt 3 ] || echo "$rows_kept rows were kept"
# shellcheck disable=SC2086
FAKECUDA=capability=80 sheaf run $options --device cuda -o lost --resume --max-sequences 1
contents_of lost > right
same 'resumed' left right
