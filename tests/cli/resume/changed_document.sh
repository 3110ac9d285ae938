# A document that changed is done again, and its row replaces the old one: one row an id.
. "$CASE/../prelude"
documents 5 20
sheaf run docs gone.txt -p x -n 4 -q -o out.jsonl
echo 'quite another text' > docs/0003.txt
echo 'now it is there' > gone.txt
rm docs/0005.txt
echo 'a new one' > docs/0006.txt
sheaf run docs gone.txt -p x -n 4 -q -o out.jsonl --resume --summary s.json
jq -c '[.documents.done, .documents.failed, .documents.resumed]' s.json
brief out.jsonl
sheaf run docs gone.txt -p x -n 4 -q -o fresh.jsonl
jq -c 'select(.id != "docs/0005.txt")' out.jsonl > present
contents present > left && contents fresh.jsonl > right && same 'an undisturbed run' left right
ls
