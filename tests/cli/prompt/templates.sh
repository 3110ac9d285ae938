# --system, --chat-template and --no-chat-template, as plan shows them; a model without a template
# needs one of them.
. "$CASE/../prelude"
printf 'the document' > a.txt
show() {
    "$SHEAF" plan a.txt -n 8 -q --show-prompt a.txt -p 'Do it.' "$@"
    echo "|exit $?"
}
show
show --system 'Be short.'
show --no-chat-template
printf '{%% for m in messages %%}<|im_start|>{{ m.role | upper }}: {{ m.content }}{%% endfor %%}' > own.jinja
show --chat-template own.jinja
printf '{%% for m in messages %%}' > broken.jinja
show --chat-template broken.jinja
show --chat-template gone.jinja
# The same model without its template.
LC_ALL=C sed 's/tokenizer\.chat_template/tokenizer.chat_disabled/' "$TINY/tiny-gemma3.gguf" > bare.gguf
show --model "$TINY/tiny-gemma3.gguf"
show --model bare.gguf
show --model bare.gguf --no-chat-template
sheaf run a.txt --model bare.gguf -p x -n 4 -q -o out.jsonl
ls
