# `sheaf run --config job.yaml`: every option by its long name, inputs too; the command line wins,
# and --no-X undoes a switch.
. "$CASE/../prelude"
documents 3 20
cat > job.yaml <<'END'
# a comment
input:
  - docs/0001.txt
  - docs/0002.txt
prompt: |
  Summarize this:

  {document}
max-tokens: 5
ignore-eos: true
temperature: 0.5
seed: 9
stop: [never, "said at all"]
too-long: keep-head
output: out.jsonl
END
sheaf run --config job.yaml -q
jq -c '[.id, .tokens.completion]' out.jsonl | sort
sheaf run docs/0001.txt docs/0002.txt -p 'Summarize this:

{document}
' -n 5 --ignore-eos --temperature 0.5 --seed 9 --stop never --stop 'said at all' --too-long keep-head -q -o same.jsonl
rows out.jsonl > left && rows same.jsonl > right && same 'as options' left right
sheaf run docs/0003.txt --config job.yaml -n 2 -o other.jsonl -q
jq -c '[.id, .tokens.completion]' other.jsonl
sheaf run --config job.yaml --no-ignore-eos --temperature 0 -n 400 --force -q
jq -cs 'any(.[]; .finish_reason == "stop")' out.jsonl
# The job file serves plan and verify, too: options of run are checked, not used.
"$SHEAF" plan --config job.yaml --json -q | jq -c '[.documents, .output_tokens_max]'
