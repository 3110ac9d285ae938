# What is wrong in a job file is refused with the file and the line; nothing starts.
. "$CASE/../prelude"
echo text > a.txt
refused() {
    printf "$1" > job.yaml
    "$SHEAF" run --config job.yaml a.txt -o out.jsonl -q 2> err
    echo "exit $?: $(head -n 1 err)"
}
refused 'prompt: x\nmax-tokens: 4\ntemprature: 1\n'
refused 'prompt: x\nctx-size: 100\n'
refused 'prompt: x\nzzzzzz: 100\n'
refused 'prompt: x\nmax-tokens: many\n'
refused 'prompt: x\nmax-tokens: [1, 2]\n'
refused 'prompt: x\nmax-tokens: {a: 1}\n'
refused 'prompt: x\n\ntoo-long: perhaps\n'
refused 'prompt: x\nignore-eos: 7\n'
refused 'config: other.yaml\n'
refused 'prompt: "open\n'
refused 'prompt: x\n  bad: [indent\n'
refused '[a, b]\n'
refused 'just text\n'
refused 'prompt: x\nprompt: y\n'
refused 'prompt: *alias\n'
refused 'input: {a: b}\nprompt: x\n'
refused 'prompt: x\nstop: [[a]]\n'
refused ''
"$SHEAF" run --config gone.yaml a.txt -q
echo "exit $?"
ls
