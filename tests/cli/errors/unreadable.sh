# Error code unreadable: its row, and its neighbours' rows as they would be without it.
. "$CASE/../prelude"
# A device stands for what cannot be read; permissions are in input/permission.sh.
echo 'the text before' > before.txt && echo 'the text after' > after.txt
expect_error 'before.txt /dev/zero after.txt' 'before.txt after.txt' -p x
