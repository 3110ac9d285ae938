# SIGTERM, SIGHUP, and Ctrl-C twice stop at once: whole rows are kept, nothing half done is written.
. "$CASE/../prelude"
documents 200 20
# stop SIGNAL...
stop() {
    rm -f out.jsonl
    env --default-signal "$SHEAF" run docs -p x -n 400 --ignore-eos --max-sequences 4 --threads 1 --device reference -q -o out.jsonl 9>&- &
    pid=$!
    wait_for_rows out.jsonl 2
    for signal in "$@"; do
        kill -s "$signal" $pid
        sleep 0.2
    done
    started=$(date +%s)
    wait $pid
    echo "$*: exit $?"
    [ $(($(date +%s) - started)) -le 5 ] || echo "it took more than 5 seconds"
    jq -cs '[length < 200, all(.[]; .status == "ok" and .tokens.completion == 400)]' out.jsonl
}
stop TERM
stop HUP
stop INT INT
# What the parent ignores stays ignored, as nohup wants.
rm out.jsonl
env --ignore-signal=HUP "$SHEAF" run docs -p x -n 100 --ignore-eos --limit 4 --threads 1 --device reference -q -o out.jsonl 9>&- &
pid=$!
sleep 0.1
kill -HUP $pid
wait $pid
echo "nohup: exit $?"
# A pipe that never ends does not keep it.
mkfifo silent && exec 3<> silent
"$SHEAF" run - -p x -n 4 -q -o piped.jsonl <&3 9>&- &
pid=$!
while [ ! -e piped.jsonl ]; do sleep 0.05; done
kill -TERM $pid
wait $pid
echo "pipe: exit $?"
