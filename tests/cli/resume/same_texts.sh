# What decides rows is what prompts and templates say, not the files they stand in.
. "$CASE/../prelude"
documents 2 20
printf 'Summarize {name}.' > prompt.txt
printf 'Summarize {name}.\n' > copy.txt
printf '{%% for message in messages %%}{{ message.content }}\n{%% endfor %%}' > chat.jinja
cp chat.jinja other.jinja
printf '{"id":"a","prompt":"Who?"}\n{"id":"b","prompt":"Why?"}\n' > questions.jsonl
sed 's/:/: /g' questions.jsonl > spaced.jsonl
# try WHAT OPTION...: resumes out.jsonl; what was made with the same texts is finished.
try() {
    what=$1
    shift
    sheaf run docs -n 4 -q -o out.jsonl --summary s.json "$@" --resume 2> err
    echo "$what: $(sed 's/.*was made with another model or other settings.*/refused/' err)" \
        "$([ -s err ] || jq -c '[.documents.done, .documents.resumed]' s.json)"
}
sheaf run docs -n 4 -q -o out.jsonl -p 'Summarize {name}.' --chat-template chat.jinja
try 'prompt in a file' --prompt-file prompt.txt --chat-template chat.jinja
try 'another file' --prompt-file copy.txt --chat-template other.jinja
printf 'Summarise {name}.' > prompt.txt
try 'another prompt in it' --prompt-file prompt.txt --chat-template chat.jinja
printf 'x' >> chat.jinja
try 'another template in it' --prompt-file copy.txt --chat-template chat.jinja
rm out.jsonl
sheaf run docs -n 4 -q -o out.jsonl --prompts questions.jsonl
try 'the same questions' --prompts spaced.jsonl
sed 's/Who/Whose/' questions.jsonl > spaced.jsonl
try 'another question' --prompts spaced.jsonl
