# A model whose weights do not fit on the (simulated) GPU: the rest is copied there in every step,
# and the rows are those of a GPU that holds them all; too small a share is refused with numbers.
. "$CASE/../prelude"
[ -n "$FAKECUDA_LIBRARY" ] || skip "no CUDA kernels in this build"
mkdir driver
cp "$FAKECUDA_LIBRARY" driver/libcuda.so.1
export LD_LIBRARY_PATH=$PWD/driver
documents 2 12
options="docs -m $TINY/tiny-qwen2.gguf --no-chat-template -p x -n 3 --device cuda --force"

contents_of() { jq -cS 'del(.timing, .work, .fingerprint)' "$1" | sort; }

# on SETTINGS NAME OPTION...
on() {
    settings=$1
    name=$2
    shift 2
    # shellcheck disable=SC2086
    FAKECUDA=$settings sheaf run $options -o "$name" --summary summary "$@" 2> err
    contents_of "$name" > right
}

on capability=80,multiprocessors=2 all
contents_of all > left
grep -c 'copied to the device' err
on capability=80,multiprocessors=2,order=1 limited --weights-memory 750K
same 'a limit' left right
jq '.streaming.bytes > 2 * 750000' summary
grep -c 'copied to the device in steps' err
on capability=80,multiprocessors=2,order=2,seed=3,no_pinned=1 least --weights-memory 650K --batch-tokens 7
same 'a smaller one' left right

# By itself, where the device is too small.
on capability=80,multiprocessors=1,memory_bytes=1400000 small --batch-tokens 8 --max-sequences 1 --context 64
same 'a small device' left right
sed -n 's/^sheaf: warning: \(.*\): .*are theirs/\1/p' err

# shellcheck disable=SC2086
FAKECUDA=capability=80 "$SHEAF" run $options -o refused -q --weights-memory 50K 2>&1 |
    sed 's/[0-9][0-9.]*/N/g'
