# Errors are finished rows, too; --retry-errors does them again, and only them.
. "$CASE/../prelude"
documents 3 20
sheaf run docs gone.txt gone2.txt -p x -n 4 -q -o out.jsonl
sheaf run docs gone.txt gone2.txt -p x -n 4 -q -o out.jsonl --resume --summary s.json
jq -c '[.documents.done, .documents.failed, .documents.resumed, .exit_code]' s.json
echo 'it came' > gone.txt
sheaf run docs gone.txt gone2.txt -p x -n 4 -q -o out.jsonl --resume --retry-errors --summary s.json
jq -c '[.documents.done, .documents.failed, .documents.resumed, .exit_code]' s.json
brief out.jsonl
echo 'it came' > gone2.txt
sheaf run docs gone.txt gone2.txt -p x -n 4 -q -o out.jsonl --resume --retry-errors
sheaf run docs gone.txt gone2.txt -p x -n 4 -q -o fresh.jsonl
rows out.jsonl > left && rows fresh.jsonl > right && same 'an undisturbed run' left right
