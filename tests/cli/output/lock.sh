# Two runs on one output: the second is refused and changes nothing.
. "$CASE/../prelude"
documents 1 20
mkfifo hold
"$SHEAF" run hold -p x -n 4 -q -o out.jsonl 9>&- &
first=$!
exec 3> hold
while [ ! -e out.jsonl ]; do sleep 0.05; done
for option in '' --resume --force; do
    sheaf run docs -p x -n 4 -q -o out.jsonl $option
done
echo text >&3
exec 3>&-
wait $first
echo "first: exit $?"
brief out.jsonl
# Afterwards it is free.
sheaf run docs -p x -n 4 -q -o out.jsonl --resume
wc -l < out.jsonl
