# Error code invalid_utf8: its row, and its neighbours' rows as they would be without it.
. "$CASE/../prelude"
echo 'the text before' > before.txt && echo 'the text after' > after.txt
{ head -c 400 /dev/zero | tr '\000' a; printf '\351'; } > almost.txt
expect_error 'before.txt almost.txt after.txt' 'before.txt after.txt' -p x --invalid-bytes error
# Replaced instead, it is a document with a warning.
sheaf run almost.txt -p x -n 4 -q | jq -c '[.status, .warnings[0]]'
