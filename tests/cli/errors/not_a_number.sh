# Error code not_a_number: its row, and its neighbours' rows as they would be without it.
. "$CASE/../prelude"
# A damaged model: the embedding of the letter Q is NaN, so only the document with a Q is lost, even
# when it is computed in the same steps as the others.
echo 'the text before' > before.txt && echo 'the text after' > after.txt
echo 'a Q in the text' > bad.txt
token=$(printf Q | "$SHEAF" tokenize --model "$TINY/tiny-f32.gguf" --ids-only -q)
python3 "$CASE/../edit_gguf.py" poison "$TINY/tiny-f32.gguf" poisoned.gguf "$token"
export SHEAF_MODEL=poisoned.gguf
expect_error 'before.txt bad.txt after.txt' 'before.txt after.txt' -p x
