# `sheaf tune`: the job file it writes runs, holds the job's settings, and changes no text.
. "$CASE/../prelude"
[ -z "$SANITIZER" ] || skip "timings of an instrumented program mean nothing"
documents 4 60
sheaf tune docs -p Summarize. -n 6 --seed 3 --stop 'END "x"' --batch-tokens 1 -o job.yaml -q > said
sed -n 's/^batch-tokens 1 -> [0-9]*: predicted [0-9]* % faster, measured -*[0-9]* % .*: \(kept\|reverted\).*/tried/p' said | sort -u
grep -v '^#\|^batch-tokens\|^max-sequences\|^threads\|^kv-memory\|^prefix-cache' job.yaml
sheaf run --config job.yaml -q -o tuned.jsonl
sheaf run docs -p Summarize. -n 6 --seed 3 --stop 'END "x"' --batch-tokens 1 -q -o plain.jsonl
rows tuned.jsonl > left
rows plain.jsonl > right
same rows left right
sheaf tune docs -p Summarize. -n 6
sheaf tune docs -p Summarize. -n 6 -o job.yaml
