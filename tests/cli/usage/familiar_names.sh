# What other programs call an option is answered with our name for it, and nothing starts.
for option in --ctx-size --n-predict --temp --max-model-len -ngl --cache-type-k --input-file \
    --max_tokens --prmopt; do
    "$SHEAF" run a.txt $option 8 -p x
    echo "exit $?"
done
