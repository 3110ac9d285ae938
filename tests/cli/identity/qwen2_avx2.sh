# Promise 3 on the tiny qwen2 model, with no wider instructions than avx2: see identity.py.
python3 "$CASE/../identity.py" "$SHEAF" "$TINY/tiny-qwen2.gguf" avx2
