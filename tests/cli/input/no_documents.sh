# Nothing to do is exit status 2, and it is said; no output is left behind.
. "$CASE/../prelude"
mkdir empty hidden && echo x > hidden/.x
sheaf run empty -p x -n 4 -o out.jsonl -q
sheaf run hidden -p x -n 4 -o out.jsonl -q
: > list && sheaf run --files-from list -p x -n 4 -o out.jsonl -q
: > none.jsonl && sheaf run none.jsonl -p x -n 4 -o out.jsonl -q
sheaf plan empty -p x -n 4 -q
# An earlier output survives --force over nothing.
echo '{"an":"old row"}' > old.jsonl
sheaf run empty -p x -n 4 -o old.jsonl -q --force
cat old.jsonl
ls
# An empty path, as an unset variable gives, is not the folder we stand in.
sheaf run '' -p x -n 4 -q | jq -c '[.id, .error.code, .error.message]'
