# Each option of --help is known to the parser: with a bad value it is refused by name, and a switch
# is taken. So the help cannot promise what does not exist.
. "$CASE/../prelude"
"$SHEAF" run --help | sed -n 's/^ .*\(--[a-z-]*\).*/\1/p' | sort -u > options
for option in $(cat options); do
    "$SHEAF" run "$option" > out 2> err < /dev/null
    grep -q 'unknown option' err && echo "$option is unknown"
done
[ "$(wc -l < options)" -gt 30 ] && echo "more than thirty options are known"
