# Guesses change no row: greedy, sampled, with int8 KV, in any batch, at stop strings inside what was
# guessed rightly, and after a resume. Guesses that were right happen, and all of them are counted.
. "$CASE/../prelude"
documents 6 30
# The tiny models say little twice, unless what was said is made likelier.
again='--repeat-penalty 0.5'
export SHEAF_MODEL="$TINY/tiny-qwen2.gguf"
for file in docs/*.txt; do cat "$file" "$file" "$file" > text && mv text "$file"; done
# compare WHAT OPTION...: without guesses, and with them in three kinds of batches.
compare() {
    what=$1
    shift
    sheaf run docs -p 'Repeat.' --no-chat-template -n 60 --ignore-eos -q -o plain.jsonl --force "$@"
    rows plain.jsonl > left
    for batch in '--max-sequences 1' '--max-sequences 4 --batch-tokens 9' '--prefix-cache off --threads 2'; do
        # shellcheck disable=SC2086 # options
        sheaf run docs -p 'Repeat.' --no-chat-template -n 60 --ignore-eos -q -o guessed.jsonl --force --speculate lookup \
            --summary s.json $batch "$@"
        rows guessed.jsonl > right
        same "$what, $batch" left right
        jq -sc '[.[] | .work] | [(map(.accepted) | add) > 10, all(.accepted <= .guessed)]' guessed.jsonl
    done
}
# shellcheck disable=SC2086 # options
{
compare greedy $again
compare 'greedy, int8 KV' $again --kv-dtype int8
compare sampled $again --temperature 0.5 --top-p 0.9 --seed 3
compare 'sampled, int8 KV' $again --temperature 0.5 --top-k 20 --seed 3 --kv-dtype int8
export SHEAF_MODEL="$TINY/tiny-gemma3.gguf"
compare 'windows, greedy' $again
compare 'windows, int8 KV' $again --kv-dtype int8
export SHEAF_MODEL="$TINY/tiny-qwen2.gguf"
}
python3 "$CASE/../check_schema.py" row guessed.jsonl
python3 "$CASE/../check_schema.py" summary s.json
jq -sc '[(map(.work.guessed) | add), (map(.work.accepted) | add)]' guessed.jsonl > left
jq -c '.tokens | [.guessed, .accepted]' s.json > right
same 'sums of guesses' left right
jq -sc 'map(.work | has("guessed")) | any' plain.jsonl
# Each step of a sequence alone yields a token and what was guessed rightly, used ones only.
# shellcheck disable=SC2086
sheaf run docs/0001.txt -p 'Repeat.' --no-chat-template -n 60 $again --ignore-eos -q -o one.jsonl --speculate lookup --summary s.json
jq -c '.tokens.completion - .work.accepted + .work.chunks - 1' one.jsonl > left && jq .engine.steps s.json > right
same steps left right
# A stop string anywhere.
python3 - "$SHEAF" <<'END'
import json, subprocess, sys
def run(*options):
    command = [sys.argv[1], "run", "docs/0001.txt", "-p", "Repeat.", "-q", "-n", "60",
               "--no-chat-template", "--ignore-eos", "--repeat-penalty",
               "0.5", *options]
    return json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
text = run()["text"]
cut_short = wrong = 0
for at in range(1, len(text) - 6, max(1, len(text) // 24)):
    stop = text[at:at + 5]
    if "\ufffd" in stop:
        continue
    plain, guessed = run("--stop=" + stop), run("--stop=" + stop, "--speculate", "lookup")
    work = guessed["work"]
    for row in (plain, guessed):
        del row["timing"], row["work"]
    wrong += plain != guessed or work["accepted"] >= max(1, guessed["tokens"]["completion"])
    cut_short += 1
print("wrong:", wrong, "of more than ten:", cut_short > 10)
END
# Not part of the fingerprint: a run may be resumed with or without.
sheaf run docs -p 'Repeat.' --no-chat-template -n 60 --ignore-eos --repeat-penalty 0.5 -q -o whole.jsonl
sheaf run docs -p 'Repeat.' --no-chat-template -n 60 --ignore-eos --repeat-penalty 0.5 -q -o part.jsonl --limit 2
sheaf run docs -p 'Repeat.' --no-chat-template -n 60 --ignore-eos --repeat-penalty 0.5 -q -o part.jsonl --resume --speculate lookup
rows whole.jsonl > left && rows part.jsonl > right && same resumed left right
# A document may not choose for itself, and a plan does not count on luck.
echo '{"id":"a","text":"x","options":{"speculate":"lookup"}}' > own.jsonl
sheaf run own.jsonl -p x -q -n 4 | jq -c '.error.code'
sheaf plan docs -p 'Repeat.' -n 60 --speculate lookup 2> err | grep -o 'every output.*right'
