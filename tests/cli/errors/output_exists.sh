# Error code output_exists: its row, and its neighbours' rows as they would be without it.
. "$CASE/../prelude"
# With --format files: the file of a document is there already, or another document has its name.
mkdir -p docs/sub && echo 'the text before' > docs/a.txt && echo bad > docs/b.txt && echo 'the text after' > docs/c.txt
mkdir -p with.dir/docs && echo precious > with.dir/docs/b.txt.txt
sheaf run docs -p x -q -n 8 --format files -o with.dir
cat with.dir/docs/b.txt.txt
jq -c 'select(.status == "error") | [.id, .error.code, .error.retryable, .error.message]' with.dir/.sheaf-rows.jsonl
rm docs/b.txt
sheaf run docs -p x -q -n 8 --format files -o without.dir
for name in a c; do same $name with.dir/docs/$name.txt.txt without.dir/docs/$name.txt.txt; done
jq -c 'select(.status == "ok")' with.dir/.sheaf-rows.jsonl > ok && contents ok > left
contents without.dir/.sheaf-rows.jsonl > right
same neighbours left right
python3 "$CASE/../check_schema.py" row with.dir/.sheaf-rows.jsonl
