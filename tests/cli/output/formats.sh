# --format text: the texts alone, errors on stderr. --format files: a tree of texts beside the rows.
. "$CASE/../prelude"
mkdir -p docs/sub && echo one > docs/a.txt && echo two > docs/sub/b.md
printf '{"id":"line/../../1","text":"three"}\n' > lines.jsonl
sheaf run docs lines.jsonl -p x -n 5 -q -o rows.jsonl
rows rows.jsonl | jq -r .text > expected
sheaf run docs/a.txt docs/sub/b.md lines.jsonl -p x -n 5 -q --format text --max-sequences 1 -o texts
sort expected > left && sort texts > right && same texts left right
sheaf run docs/a.txt gone.txt -p x -n 5 -q --format text > out
wc -l < out
sheaf run docs lines.jsonl -p x -n 5 -q --format files -o tree
find tree -type f | sort
cat tree/docs/a.txt.txt > out && rows rows.jsonl | jq -j 'select(.id == "docs/a.txt") | .text' > right && same 'a file' out right
contents tree/.sheaf-rows.jsonl | jq -c .text > left && contents rows.jsonl | jq -c .text > right && same rows left right
# A second run does not overwrite; --resume has nothing to do; --force does it again.
sheaf run docs lines.jsonl -p x -n 5 -q --format files -o tree
rm tree/docs/a.txt.txt
sheaf run docs lines.jsonl -p x -n 5 --format files -o tree --resume --summary s.json -q
jq -c '[.documents.done, .documents.resumed]' s.json
sheaf run docs lines.jsonl -p x -n 5 -q --format files -o tree --force
find tree -type f | wc -l
