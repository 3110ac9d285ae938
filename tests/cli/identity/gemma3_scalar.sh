# Promise 3 on the tiny gemma3 model, with no wider instructions than scalar: see identity.py.
python3 "$CASE/../identity.py" "$SHEAF" "$TINY/tiny-gemma3.gguf" scalar
