# `cat long.txt | sheaf run -p 'Summarize.'`: one document, one row, on stdout.
. "$CASE/../prelude"
documents 1 100
cat docs/0001.txt | sheaf run -p 'Summarize.' -n 8 -q > out.jsonl
jq -c '[.id, .source, .status]' out.jsonl
python3 "$CASE/../check_schema.py" row out.jsonl
# Naming it, redirecting it and naming `-` give the same text.
sheaf run -p 'Summarize.' -n 8 -q < docs/0001.txt > redirected.jsonl
sheaf run - -p 'Summarize.' -n 8 -q < docs/0001.txt > dash.jsonl
sheaf run docs/0001.txt -p 'Summarize.' -n 8 -q > named.jsonl
for way in redirected dash named; do
    jq -r .text out.jsonl > left && jq -r .text $way.jsonl > right && same $way left right
done
