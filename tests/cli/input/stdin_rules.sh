# stdin is read when named, or when it is a pipe or a file and no INPUT is given; never waited for.
. "$CASE/../prelude"
echo text > a.txt
sheaf run -p x -n 4 < /dev/null
# A pipe that is never closed: it must not be touched when there is an INPUT.
mkfifo silent && exec 3<> silent
timeout 60 "$SHEAF" run a.txt -p x -n 4 -q -o out.jsonl <&3
echo "exit $?"
brief out.jsonl
# Without stdin at all.
timeout 60 "$SHEAF" run -p x -n 4 <&-
echo "exit $?"
timeout 60 "$SHEAF" run - -p x -n 4 -q <&- | jq -c '[.id, .error.code]'
# With stdin or stdout closed no other file takes their place.
"$SHEAF" run a.txt -p x -n 4 -q -o out2.jsonl <&- >&-
echo "exit $?"
brief out2.jsonl
"$SHEAF" run a.txt -p x -n 4 -q >&-
echo "exit $?"
