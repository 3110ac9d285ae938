# Error code bad_option: its row, and its neighbours' rows as they would be without it.
. "$CASE/../prelude"
printf '%s\n' '{"id":1,"text":"before"}' '{"id":2,"text":"x","options":{"temperature":-3}}' '{"id":3,"text":"after"}' > with.jsonl
grep -v options with.jsonl > without.jsonl
expect_error with.jsonl without.jsonl -p x
