# Options that do not exist, or not for this command, are refused in one line.
refused() {
    "$SHEAF" "$@" 2>&1 | head -n 1
}
refused run a.txt -p x --frobnicate
refused run a.txt -p x -Z
refused run a.txt -p x --no-such-switch
refused run a.txt -p x --no-output
refused plan a.txt -p x --output out.jsonl
refused tokenize a.txt --temperature 1
refused model info --prompt x
refused run a.txt -p x --=3
