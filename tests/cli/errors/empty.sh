# Error code empty: its row, and its neighbours' rows as they would be without it.
. "$CASE/../prelude"
echo 'the text before' > before.txt && echo 'the text after' > after.txt
: > nothing.txt && printf ' \n\t\n' > blank.txt
expect_error 'before.txt nothing.txt blank.txt after.txt' 'before.txt after.txt' -p x
