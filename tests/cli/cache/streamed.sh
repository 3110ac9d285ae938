# A model larger than --weights-memory is read from the tile cache in every step: the rows are the
# same, the memory is what was stated, and what stands in the way is said.
. "$CASE/../prelude"
documents 3 60
cp "$TINY/tiny-types.gguf" model.gguf
SHEAF_MODEL=$PWD/model.gguf
cache=$HOME/.cache/sheaf
sleep 0.2
sheaf run docs -p x -n 8 -q --no-chat-template -o whole --tile-cache 0
rows whole > whole.rows

# work NAME OPTION...: rows in NAME, compared; its streaming.
work() {
    name=$1
    shift
    sheaf run docs -p x -n 8 -q --no-chat-template -o "$name" --force --summary "$name.json" "$@"
    rows "$name" > "$name.rows"
    same "$name" whole.rows "$name.rows"
    python3 "$CASE/../check_schema.py" summary "$name.json"
    # A sanitizer takes memory of its own.
    jq -c --arg sanitizer "$SANITIZER" '[.streaming.bytes > 0, .memory.weights_bytes,
        $sanitizer != "" or .memory.peak_rss_bytes <= .memory.stated_bytes]' "$name.json"
}
work built --weights-memory 2500K
ls "$cache" | grep -c tiles
work found --weights-memory 2500K --batch-tokens 7
work less --weights-memory 1500K -t 1
work least --weights-memory 600K
work enough --weights-memory 1G | sed 's/,[0-9]*,/,N,/'
sheaf plan docs -p x -n 8 -q --no-chat-template --weights-memory 2500K --json |
    jq -c '.streaming | [.bytes_per_step > 0, .bytes_per_second > 0, .hidden_batch_tokens > 0]'
sheaf plan docs -p x -n 8 -q --no-chat-template --weights-memory 2500K | sed -n 's/^\(weights\) .*/\1/p'

# Errors, before a row is written.
refused() {
    "$SHEAF" run docs -p x -n 8 -q --no-chat-template -o "refused" --force "$@" 2> err
    echo "exit $?"
    sed "s,$HOME,HOME,;s,tiles-[0-9a-f]*,tiles," err
}
refused --weights-memory 10K
refused --weights-memory 2500K --tile-cache 0
rm "$cache"/tiles-*
refused --weights-memory 2500K --tile-cache 100K
refused --weights-memory 2500K --device reference
