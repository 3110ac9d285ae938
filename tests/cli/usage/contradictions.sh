# Options that do not go together are refused before anything is touched.
refused() {
    "$SHEAF" run a.txt "$@" > out 2> err < /dev/null
    echo "exit $?: $(head -n 1 err)"
}
echo text > a.txt
echo keep > out.jsonl
export SHEAF_MODEL="$TINY/tiny-llama.gguf"
refused
refused -p x --prompt-file a.txt
refused -p x --prompts a.txt
refused -p x --resume
refused -p x --order input
refused -p x --format files
refused -p x --retry-errors -o new.jsonl
refused -p x --force --resume -o out.jsonl
refused -p x --format text --resume -o out.jsonl
refused -p x --format text --order input -o new.txt
refused -p x --context 600
refused -p x -n 512
refused -p x -n 8 --no-chat-template --chat-template a.txt
refused -p x -n 8 --no-chat-template --system s
ls
cat out.jsonl
