# A folder is walked in sorted order; hidden, binary and special files are skipped and said.
. "$CASE/../prelude"
mkdir -p docs/b/deep docs/.git
echo one > docs/b/1.txt && echo two > docs/b/deep/2.md && echo three > docs/a.txt
echo four > docs/c && echo hidden > docs/.hidden && echo hidden > docs/.git/config
printf 'PK\003\004\000\000' > docs/b/4.zip && printf '%%PDF-1.7 x' > docs/5.pdf
mkfifo docs/fifo && ln -s .. docs/b/loop
sheaf run docs/ -p x -n 4 -o out.jsonl --summary summary.json
rows out.jsonl | jq -c '[.index, .id, .source.path, .status]'
jq -c ".documents | del(.warnings)" summary.json
