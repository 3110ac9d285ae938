#!/usr/bin/env python3
"""Golden ids of short texts.

    scripts/make_tokenizer_golden.py MODEL.gguf > tests/golden/tokenizer/NAME.json

The reference is the tokenizer that compare_tokenizer.py builds from the file's own vocabulary with
the PyPI package `tokenizers`; the texts are its hard ones and a few random mixtures. Each line is
one text and its ids as untrusted text without BOS. Needs: pip install tokenizers gguf.
"""
import json
import random
import sys

import compare_tokenizer

SENTENCES = [
    "", " ", "Hello, world!", "The quick brown fox jumps over the lazy dog.", "  leading",
    "trailing  ", "I can't believe it's 2026 already; they'll've gone.",
    "price: $1,234.56 (approx. 12.5%)",
    "for (int i = 0; i < n; i++) {\n\treturn a[i] != b[i];\n}\n", "日本語のテキストと English の混在",
    "Ünïcödé naïve", "مرحبا بالعالم", "नमस्ते दुनिया", "สวัสดีชาวโลก", "안녕하세요 세계",
    "Привет, мир", "👩‍💻 codes 🏳️‍🌈", "a\u0301\u0323e\u0302",
]


def main():
    vocabulary = compare_tokenizer.Vocabulary(sys.argv[1])
    reference = compare_tokenizer.build(vocabulary, vocabulary.splitter)
    rng = random.Random(20)
    texts = SENTENCES + compare_tokenizer.SNIPPETS
    texts += [compare_tokenizer.random_text(rng) for _ in range(24)]
    lines = [json.dumps([text, reference.encode(text, add_special_tokens=False).ids],
                        separators=(",", ":")) for text in texts]
    print("[" + ",\n".join(lines) + "]")


if __name__ == "__main__":
    main()
