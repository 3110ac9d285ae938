# prompt = cached + computed; the ids that plan and run count are those of the tokenizer, and the
# engine computes each once.
. "$CASE/../prelude"
documents 6 80
sheaf run docs docs/0001.txt -p 'Summarize.' --system 'One long system message that all of them share, word by word.' -n 5 --ignore-eos -q -o out.jsonl
python3 "$CASE/../check_schema.py" row out.jsonl
jq -cs 'map(select(.status == "ok")) | [length, all(.[]; .work.cached + .work.computed == .tokens.prompt),
    all(.[]; .work.recomputed == 0 and .work.preemptions == 0), all(.[]; .tokens.completion == 5)]' out.jsonl
sheaf run docs/0002.txt -p '{document}' --no-chat-template -n 5 -q | jq .tokens.prompt
"$SHEAF" tokenize docs/0002.txt | jq .tokens
sheaf run docs/0002.txt -p '{document}' --no-chat-template -n 5 -q --summary s.json > one.jsonl
jq -c '.tokens | [.document, .prompt == .cached + .computed, .recomputed]' s.json
