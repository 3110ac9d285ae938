# `| head -1` is quiet and ends early.
. "$CASE/../prelude"
documents 40 30
{ "$SHEAF" run docs -p x -n 60 --ignore-eos -q --max-sequences 2 9>&-; echo "exit $?" > status; } | head -n 1 | jq -c .status
cat status
"$SHEAF" tokenize docs -q | head -n 1 | jq -c .id
"$SHEAF" run --help | head -n 1
