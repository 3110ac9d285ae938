# A recorded output cut at many places, in rows and between them: resuming gives the undisturbed
# rows each time, and never touches the whole rows that are there.
. "$CASE/../prelude"
documents 6 20
sheaf run docs gone.txt -p x -n 4 -q -o whole.jsonl
rows whole.jsonl > right
first=$(head -n 1 whole.jsonl | wc -c)
third=$(head -n 3 whole.jsonl | wc -c)
size=$(wc -c < whole.jsonl)
cuts="0 1 $((first / 2)) $((first - 1)) $first $((first + 1)) $((third - 2)) $third $((third + 40)) $((size - 1)) $size"
count=0
for cut in $cuts; do
    head -c "$cut" whole.jsonl > out.jsonl
    complete=$(head -c "$cut" whole.jsonl | tr -dc '\n' | wc -c)
    "$SHEAF" run docs gone.txt -p x -n 4 -q -o out.jsonl --resume 9>&-
    [ $? -eq 1 ] || echo "cut at $cut: another exit status"
    rows out.jsonl > left
    cmp -s left right || { echo "cut at $cut of $size:"; same rows left right; }
    head -n "$complete" whole.jsonl > left && head -n "$complete" out.jsonl | cmp -s - left || echo "cut at $cut: rows changed"
    count=$((count + 1))
done
echo "$count places"
# Garbage that is no torn row is not ours to cut.
printf 'garbage\n' >> out.jsonl && cp out.jsonl kept.jsonl
sheaf run docs gone.txt -p x -n 4 -q -o out.jsonl --resume
cmp out.jsonl kept.jsonl
