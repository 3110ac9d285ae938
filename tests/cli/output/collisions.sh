# --format files: no document's file is overwritten by another's, with --force or --resume neither.
. "$CASE/../prelude"
printf '{"id":"n","text":"the first"}\n{"id":"/n","text":"the second"}\n' > in.jsonl
run() {
    sheaf run in.jsonl -p x -n 6 --ignore-eos -q --max-sequences 1 --format files -o results "$@"
    jq -c '[.id, .error.code // empty]' results/.sheaf-rows.jsonl | sort
}
run
cp results/n.txt first.txt
run --force
cmp results/n.txt first.txt
run --resume --retry-errors
cmp results/n.txt first.txt
# A file whose row was lost is found again; a changed document replaces its own.
grep -v '"id":"n"' results/.sheaf-rows.jsonl > left && mv left results/.sheaf-rows.jsonl
run --resume
cmp results/n.txt first.txt
sed -i 's/the second/another text, that is longer/' in.jsonl
run --resume
jq -c .status results/.sheaf-rows.jsonl | sort | uniq -c | tr -s " "
ls results
