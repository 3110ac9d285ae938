# A file that another user may not read is an error row, and a folder, too; the rest is done.
. "$CASE/../prelude"
[ "$(id -u)" -eq 0 ] || skip "needs root, to become another user"
command -v setpriv > /dev/null || skip "needs setpriv (util-linux)"
mkdir -p docs/closed && echo open > docs/open.txt && echo secret > docs/secret.txt && echo x > docs/closed/x.txt
chmod 600 docs/secret.txt && chmod 700 docs/closed
mkdir readonly && cp "$SHEAF" "$SHEAF_MODEL" . && chmod 755 . ..
as_nobody() {
    setpriv --reuid=65534 --regid=65534 --clear-groups ./sheaf "$@"
    echo "exit $?"
}
as_nobody run docs -p x -n 4 -q --model tiny-llama.gguf > out
grep -v '^{' out && grep '^{' out > rows.jsonl
rows rows.jsonl | jq -c '[.id, .error.code // "ok", .error.message]'
as_nobody run docs/open.txt -p x -n 4 -q --model tiny-llama.gguf -o readonly/out.jsonl
chmod 600 tiny-llama.gguf
as_nobody run docs/open.txt -p x -n 4 -q --model tiny-llama.gguf
