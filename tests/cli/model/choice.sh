# The model: --model, else $SHEAF_MODEL, else the fetched default; none is said with what to do.
. "$CASE/../prelude"
echo text > a.txt
model() {
    "$SHEAF" run a.txt -p x -n 2 -q "$@" 2>&1 | jq -r .model
}
model
model --model "$TINY/tiny-qwen2.gguf"
SHEAF_MODEL="$TINY/tiny-f32.gguf" model
unset SHEAF_MODEL
sheaf run a.txt -p x -n 2 -q
mkdir -p home/.cache/sheaf/models && cp "$TINY/tiny-llama.gguf" home/.cache/sheaf/models/smollm2-135m-instruct.gguf
HOME=$PWD/home XDG_CACHE_HOME='' "$SHEAF" run a.txt -p x -n 2 2> err | jq -r .model
grep -c '^sheaf: model .*smollm2-135m-instruct.gguf' err
