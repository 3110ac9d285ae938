# A resume whose settings would give other rows is refused, and the output is not touched.
. "$CASE/../prelude"
documents 3 20
printf 'a prompt' > prompt.txt
sheaf run docs -p x -n 4 -q -o out.jsonl
cp out.jsonl kept.jsonl
for option in '-n 5' '--temperature 0.5' '--stop a' '--ignore-eos' '--context 256' '--system s' \
    '--kv-dtype int8' '--matmul-dtype int8' '--too-long keep-head' '--seed 3' '--no-chat-template' '-p y' '--isa scalar' \
    '--prompts /dev/null' "--model $TINY/tiny-qwen2.gguf"; do
    sheaf run docs -p x -n 4 -q -o out.jsonl --resume $option 2> err
    echo "$option: $(sed 's/.*was made with another model or other settings.*/refused/' err)"
    cmp out.jsonl kept.jsonl
done
