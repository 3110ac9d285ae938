# `sheaf model info`: what a file holds, as text and as JSON.
. "$CASE/../prelude"
for name in llama qwen2 gemma3 types f32; do
    sheaf model info --json --model "$TINY/tiny-$name.gguf" |
        jq -c '[.name, .family, .layers, .width, .heads, .kv_heads, .head_dim, .vocabulary, .context, .splitter, .chat_template]'
done
sheaf model info | grep -c -e '^name ' -e '^sha256 '
sheaf model
sheaf model info extra
sheaf model show
