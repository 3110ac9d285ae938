# -o may name a pipe: its reader gets every row; one that goes away ends the run quietly.
. "$CASE/../prelude"
documents 30 20
mkfifo pipe
wc -l < pipe > count &
sheaf run docs -p x -n 4 -q -o pipe
wait
cat count
head -c 10 pipe > head &
sheaf run docs -p x -n 200 --ignore-eos --max-sequences 1 -q -o pipe
wait
wc -c < head
