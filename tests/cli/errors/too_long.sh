# Error code too_long: its row, and its neighbours' rows as they would be without it.
. "$CASE/../prelude"
echo 'the text before' > before.txt && echo 'the text after' > after.txt
documents 1 100
expect_error 'before.txt docs/0001.txt after.txt' 'before.txt after.txt' -p x --context 64
