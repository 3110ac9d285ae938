# Error code not_found: its row, and its neighbours' rows as they would be without it.
. "$CASE/../prelude"
echo 'the text before' > before.txt && echo 'the text after' > after.txt
expect_error 'before.txt gone.txt after.txt' 'before.txt after.txt' -p x
