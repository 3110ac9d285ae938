# Ctrl-C twice ends the program within two seconds even where it cannot look: here it waits for
# somebody to read the pipe it is to write. `plan` has nothing to finish and ends at once.
case $SANITIZER in
*thread*)
    echo "ThreadSanitizer holds signals back while a program waits in open()" >&2
    exit 77
    ;;
esac
. "$CASE/../prelude"
documents 2 20
mkfifo unread silent && exec 3<> silent
env --default-signal=INT "$SHEAF" run docs -p x -n 4 -q -o unread 9>&- &
pid=$!
sleep 0.5
started=$(date +%s)
kill -INT $pid
sleep 0.3
kill -INT $pid
wait $pid
echo "blocked: exit $?"
[ $(($(date +%s) - started)) -le 4 ] || echo "it took more than 4 seconds"
env --default-signal=INT "$SHEAF" plan - -p x -n 4 -q <&3 9>&- &
pid=$!
sleep 0.5
kill -INT $pid
wait $pid
echo "plan: exit $?"
