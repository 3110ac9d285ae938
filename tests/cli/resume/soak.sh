# scripts/soak_resume in small: kill -9 at random moments, resumed each time, gives the undisturbed
# run's rows. The script alone does it with 20 kills over 200 documents.
"$CASE/../../../scripts/soak_resume" --sheaf "$SHEAF" --model "$TINY/tiny-llama.gguf" --kills 3 \
    --documents 30 --max-tokens 100 --source "$SAMPLES" -- --too-long keep-head \
    --max-sequences 4 --ignore-eos > said || cat said
tail -n 1 said
