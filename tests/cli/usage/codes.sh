# `sheaf help codes`: every code of the table, what it means, and whether to try again.
. "$CASE/../prelude"
sheaf help codes | head -n 3
sheaf help codes | tail -n +2 | awk '{ print (NF > 2 ? "explained" : $0) }' | sort -u
for code in $(sheaf help codes | tail -n +2 | awk '{ print $1 }' | tr -d '*'); do
    [ -e "$CASE/../errors/$code.sh" ] || echo "$code has no case"
done
