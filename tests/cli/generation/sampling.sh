# Sampling is reproducible: the same seed gives the same text however documents are batched, and
# another seed another one; temperature 0 is greedy; the chain's options take effect.
. "$CASE/../prelude"
documents 6 40
# text OPTION...
text() {
    sheaf run docs -p x -n 16 --ignore-eos -q "$@" | rows | jq -r .text
}
text > greedy
text --temperature 0 --seed 5 > zero
text --temperature 0.9 --seed 1 > one
text --temperature 0.9 --seed 1 --max-sequences 1 > again
text --temperature 0.9 --seed 2 > two
text --temperature 0.9 --seed 1 --top-k 1 > top
text --temperature 0.9 --seed 1 --min-p 1 > likeliest
text --temperature 0.9 --seed 1 --top-p 0.000001 > narrow
text --repeat-penalty 50 > penalty
same 'temperature 0' greedy zero
same 'same seed' one again
same 'top-k 1 is greedy' greedy top
same 'min-p 1 is greedy' greedy likeliest
same 'narrow top-p is greedy' greedy narrow
for other in two greedy; do
    cmp -s one $other && echo "one and $other do not differ"
done
cmp -s greedy penalty && echo "the repeat penalty does nothing"
sort one | uniq -d
