# What is no model, or no longer one, is refused in one line that says why; exit status 2, at once.
. "$CASE/../prelude"
echo text > a.txt
refused() {
    timeout 60 "$SHEAF" run a.txt -p x -n 4 -q --model "$@" > out 2> err
    echo "exit $?: $(cat err)"
    [ ! -s out ] || echo "something came out"
}
refused gone.gguf
refused .
refused a.txt
: > empty.gguf && refused empty.gguf
refused /dev/null
printf 'GGML\003\000\000\000' > magic.gguf && refused magic.gguf
printf 'GGUF\001\000\000\000' > version.gguf && refused version.gguf
head -c 200000 /dev/zero > zeros.gguf && refused zeros.gguf
printf 'GGUF\003\000\000\000\377\377\377\377\377\377\377\177\377\377\377\377\377\377\377\177' > counts.gguf && refused counts.gguf
# Cut anywhere, the file is refused, never read beyond its end.
size=$(wc -c < "$SHEAF_MODEL")
for cut in 1 3 4 7 8 15 23 24 100 1000 5000 12345 16000 $((size / 2)) $((size - 1)); do
    head -c "$cut" "$SHEAF_MODEL" > cut.gguf
    timeout 60 "$SHEAF" run a.txt -p x -n 4 -q --model cut.gguf > out 2> err
    status=$?
    [ $status -eq 2 ] && [ "$(wc -l < err)" -eq 1 ] && [ ! -s out ] || echo "cut at $cut: exit $status: $(cat err)"
done
# A tensor that is missing, and an architecture nobody knows.
LC_ALL=C sed 's/blk\.1\.ffn_up/blk.1.ffn_uq/' "$SHEAF_MODEL" > renamed.gguf && refused renamed.gguf
LC_ALL=C sed 's/general\.architecture/general.architectura/' "$SHEAF_MODEL" > unnamed.gguf && refused unnamed.gguf
