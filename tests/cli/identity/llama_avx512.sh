# Promise 3 on the tiny llama model, with no wider instructions than avx512: see identity.py.
python3 "$CASE/../identity.py" "$SHEAF" "$TINY/tiny-llama.gguf" avx512
