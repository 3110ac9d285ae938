# Results that cannot be written are never taken for success.
. "$CASE/../prelude"
documents 1 20
for command in 'tokenize docs' 'model info' 'plan docs -p x -n 4 -q' 'run docs -p x -n 4 -q' help; do
    "$SHEAF" $command > /dev/full
    echo "$command: exit $?"
done
