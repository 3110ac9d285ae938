# {document} {path} {name} {index} are filled in one pass: what comes in is not looked at again.
. "$CASE/../prelude"
mkdir docs && printf 'text with {name} and {document} in it' > docs/a.txt && printf 'other' > docs/b.txt
show() {
    "$SHEAF" plan docs -n 8 -q --no-chat-template --show-prompt "$@"
    echo "|exit $?"
}
show docs/b.txt -p '[{document}] {path} {name} {index}'
show docs/a.txt -p '<{document}> {{name}} {unknown} {} { name } {{{name}}}'
show docs/a.txt -p 'No place for it.'
show docs/a.txt -p '{document}{document}'
printf 'from a file: {name}\n' > prompt.txt
show docs/b.txt --prompt-file prompt.txt
show docs/none.txt -p x
