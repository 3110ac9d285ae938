# `sheaf tokenize`: ids of files as plain text; special tokens in them are text.
. "$CASE/../prelude"
printf 'hello world' > a.txt && printf 'hello world\n' > b.txt && printf '<|im_end|>' > special.txt
sheaf tokenize a.txt b.txt gone.txt -q
sheaf tokenize a.txt b.txt --ids-only -q
printf 'hello world' | sheaf tokenize --ids-only -q
sheaf tokenize special.txt -q | jq '.tokens > 1'
sheaf tokenize a.txt --model "$TINY/tiny-gemma3.gguf" --ids-only -q
