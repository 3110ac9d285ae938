# Packed weights are kept for the next start: made once, used, switched off, mended after damage with
# a warning, left alone where they cannot be written; and no row differs.
. "$CASE/../prelude"
documents 3 30
cp "$SHEAF_MODEL" model.gguf
SHEAF_MODEL=$PWD/model.gguf
cache=$HOME/.cache/sheaf
sleep 0.2

# work NAME OPTION...: rows in NAME, what is said about the cache in NAME.said.
work() {
    name=$1
    shift
    sheaf run docs -p x -n 8 -v -o "$name" --force "$@" 2> err
    grep -e 'acked' err | sed "s,tiles-[0-9a-f]*,tiles,;s/in [0-9.]* ms/in MS/" > "$name.said"
    sed "s,$HOME,HOME," "$name.said"
    rows "$name" > "$name.rows"
    cmp off.rows "$name.rows"
}
echo "off:" && work off --tile-cache 0
ls "$cache" | grep -c tiles
echo "first:" && work first
echo "second:" && work second
ls "$cache" | grep -c tiles
echo "narrow:" && work narrow --isa scalar > narrow.out
grep -c 'packed weights are those of' narrow.out

echo "damaged:" && printf x | dd of="$(ls "$cache"/tiles-*)" bs=1 seek=9000 conv=notrunc 2> /dev/null
work damaged
echo "mended:" && work mended
echo "cut:" && : > "$(ls "$cache"/tiles-*)" && work cut

echo "touched:" && touch model.gguf && sleep 0.2 && work touched
echo "a limit:" && rm "$cache"/tiles-* && work limit --tile-cache 1K
ls "$cache" | grep -c tiles

echo "no folder:" && export XDG_CACHE_HOME="$PWD/model.gguf" && work nowhere
echo "no home:" && unset XDG_CACHE_HOME && HOME='' work homeless
[ ! -s homeless.said ] || echo "something was said"
