# Error code no_prompt: its row, and its neighbours' rows as they would be without it.
. "$CASE/../prelude"
printf '%s\n' '{"id":1,"text":"before","prompt":"p"}' '{"id":2,"text":"none"}' '{"id":3,"text":"after","prompt":"p"}' > with.jsonl
grep -v none with.jsonl > without.jsonl
expect_error with.jsonl without.jsonl
