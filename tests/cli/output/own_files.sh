# What a run writes is never its document, however it is named: the folder that is read may hold the
# output, and a second run over it has nothing to do.
. "$CASE/../prelude"
documents 3 20
cd docs
sheaf run . -p x -n 4 -q -o out.jsonl --summary summary.json --errors errors.jsonl
brief out.jsonl
sheaf run . -p x -n 4 -q -o ../docs/out.jsonl --summary ./summary.json --resume && wc -l < out.jsonl
jq -c '[.documents.resumed, .documents.skipped]' summary.json
rm out.jsonl summary.json
"$SHEAF" run . -p x -n 4 > out.jsonl 2> log 9>&-
brief out.jsonl
grep -o 'skipped.*' log
rm out.jsonl log
sheaf run . -p x -n 4 -q --format files -o results && sheaf run . -p x -n 4 -q --format files -o results --resume
find results -type f | LC_ALL=C sort
cd ..
# An input that is named and written is refused, and kept.
sheaf run docs/0001.txt -p x -n 4 -q -o docs/0001.txt --force
sheaf run docs -p x -n 4 -q --format files -o docs
printf 'docs/0001.txt\ndocs/0002.txt\n' > list
sheaf run --files-from list -p x -n 4 -q -o docs/0001.txt --force
rm -f docs/0001.txt
sheaf run docs -p x -n 4 -q -o rows.jsonl --summary rows.jsonl
sheaf run docs gone -p x -n 4 -q -o rows.jsonl --errors rows.jsonl
ls
