# --files-from reads paths, one a line, or ended by NUL with -0; from stdin with `-`; and --limit.
. "$CASE/../prelude"
mkdir docs && echo a > 'docs/a b.txt' && echo b > docs/b.txt
newline=$(printf 'docs/c\nd.txt') && echo c > "$newline"
printf 'docs/b.txt\n\ndocs/a b.txt\ndocs/gone.txt\n' > list
sheaf run --files-from list -p x -n 4 -q | brief
printf 'docs/b.txt\0docs/c\nd.txt\0' > list0
sheaf run --files-from list0 -0 -p x -n 4 -q | brief
sheaf run --files-from list0 --null -p x -n 4 -q | rows | jq -c .id
printf 'docs/b.txt' | sheaf run --files-from - -p x -n 4 -q | brief
sheaf run --files-from gone -p x -n 4 -q
sheaf run docs 'docs/a b.txt' --limit 2 -p x -n 4 -q | rows | jq -c '[.index, .id]'
