# Pages that fall behind a window are given back while a document is computed in chunks, and used by
# the next one: on a (simulated) GPU, too, the reference's text.
. "$CASE/../prelude"
[ -n "$FAKECUDA_LIBRARY" ] || skip "no CUDA kernels in this build"
mkdir driver
cp "$FAKECUDA_LIBRARY" driver/libcuda.so.1
export LD_LIBRARY_PATH=$PWD/driver
documents 2 90
options="docs -m $TINY/tiny-gemma3.gguf --no-chat-template -p x -n 3 -q --max-sequences 1"
contents_of() { jq -cS 'del(.timing, .work, .numerics, .fingerprint)' "$1" | sort; }

# shellcheck disable=SC2086
sheaf run $options --device reference -o reference
contents_of reference > left
jq -s 'all(.tokens.prompt > 192)' reference
# shellcheck disable=SC2086
FAKECUDA=capability=80,multiprocessors=2 sheaf run $options --device cuda -o cuda --batch-tokens 50
contents_of cuda > right
same cuda left right
