# Ctrl-C once: no new documents, what runs is finished and written; it is said; exit status 130.
. "$CASE/../prelude"
documents 100 20
env --default-signal=INT "$SHEAF" run docs -p x -n 300 --ignore-eos --max-sequences 2 --threads 1 --device reference -o out.jsonl 2> err 9>&- &
pid=$!
wait_for_rows out.jsonl 2
kill -INT $pid
wait $pid
echo "exit $?"
grep -c 'stopping: [0-9]* running documents are finished and written' err
rows=$(wc -l < out.jsonl)
[ "$rows" -lt 100 ] && echo "it ended early"
jq -cs 'all(.[]; .status == "ok" and .tokens.completion == 300)' out.jsonl
python3 "$CASE/../check_schema.py" row out.jsonl
