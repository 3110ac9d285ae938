# --errors appends the error rows to a file of their own, too; --fail-on makes warnings count.
. "$CASE/../prelude"
documents 2 20
sheaf run docs gone.txt -p x -n 3 --ignore-eos -q -o out.jsonl --errors errors.jsonl
brief errors.jsonl
jq -c 'select(.status == "error")' out.jsonl > left && jq -c . errors.jsonl > right && same 'error rows' left right
sheaf run docs -p x -n 3 --ignore-eos -q -o cut.jsonl --fail-on cut_at_max_tokens
sheaf run docs -p x -n 3 --ignore-eos -q -o short.jsonl --fail-on shortened --fail-on replaced_bytes
brief cut.jsonl
# Nothing failed: the file is not made.
sheaf run docs -p x -n 3 --ignore-eos -q -o none.jsonl --errors none
ls
# Failures and their first reasons are said at the end.
sheaf run docs gone.txt gone2.txt -p x -n 3 --ignore-eos -o said.jsonl
