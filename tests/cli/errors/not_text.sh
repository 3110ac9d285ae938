# Error code not_text: its row, and its neighbours' rows as they would be without it.
. "$CASE/../prelude"
echo 'the text before' > before.txt && echo 'the text after' > after.txt
printf 'PK\003\004\000\000' > binary.txt
printf '\377\376t\000e\000' > utf16.txt
head -c 400 /dev/zero | tr '\000' '\351' > latin.txt
expect_error 'before.txt binary.txt utf16.txt latin.txt after.txt' 'before.txt after.txt' -p x
