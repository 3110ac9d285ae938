#!/usr/bin/env python3
"""Compare sheaf's token ids with the PyPI package `tokenizers` on the vocabulary of a GGUF file.

    scripts/compare_tokenizer.py build/release/tokenize_dump MODEL.gguf [--text PATH...]
        [--size MB] [--trusted]
        [--splitter NAME]: as if the file's tokenizer.ggml.pre were NAME, for splitters without a
        vocabulary at hand

The reference tokenizer is built from the file's own tokens, merges or scores, with the normalizer
and splitter that the model family's tokenizer.json has (SPLITTERS below; scores become merges the
way transformers' converter makes them). Texts: files under --text, and generated mixtures of
scripts, digits, marks, blanks, control and random characters. Everything is tokenised as
untrusted text, with --trusted as trusted text, where control tokens count; each record's ids must
be equal, and so must the character each token begins at where NFC changed nothing and the
vocabulary has every byte (bytes without a token are dropped, and then the reference's offsets
drift).
Needs: pip install tokenizers gguf. Exit code 1 when anything differs.
"""
import argparse
import os
import random
import struct
import subprocess
import sys
import tempfile
import unicodedata

import gguf
from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers

CL100K = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}%s| ?[^\s\p{L}\p{N}]+[\r\n]*"
          r"|\s*[\r\n]+|\s+(?!\S)|\s+")
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)


def byte_level(use_regex):
    return pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=use_regex)


def split(pattern):
    return pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(pattern), behavior="isolated"), byte_level(False)])


def digits_first():
    return pre_tokenizers.Sequence([
        pre_tokenizers.Digits(individual_digits=True), byte_level(True)])


def falcon():
    return pre_tokenizers.Sequence([
        pre_tokenizers.Punctuation(behavior="contiguous"), byte_level(True),
        pre_tokenizers.Digits(individual_digits=False),
        pre_tokenizers.Split(Regex("[0-9][0-9][0-9]"), behavior="isolated")])


# tokenizer.ggml.pre: (splitter, NFC, ignore_merges)
SPLITTERS = {
    **dict.fromkeys(("gpt-2", "phi-2"), (byte_level(True), False, False)),
    **dict.fromkeys(("smollm", "starcoder", "refact"), (digits_first(), False, False)),
    "command-r": (digits_first(), True, False),
    **dict.fromkeys(("qwen2", "deepseek-r1-qwen"), (split(CL100K % ""), True, False)),
    **dict.fromkeys(("llama-bpe", "llama3", "llama-v3", "falcon3"),
                    (split(CL100K % "{1,3}"), False, True)),
    "falcon": (falcon(), False, False),
}


class Vocabulary:
    def __init__(self, path):
        fields = gguf.GGUFReader(path).fields

        def get(name, default=None):
            field = fields.get("tokenizer.ggml." + name)
            return field.contents() if field else default

        self.model = get("model")
        self.splitter = get("pre", "")
        self.tokens = get("tokens")
        self.classes = get("token_type", [NORMAL] * len(self.tokens))
        self.scores = get("scores")
        self.merges = get("merges", [])
        self.unknown = get("unknown_token_id")
        self.space_prefix = get("add_space_prefix", True)

        alphabet = byte_level(True).alphabet()
        self.has_all_bytes = self.model != "gpt2" or set(alphabet) <= set(self.tokens)

    def write(self, path, splitter):
        """A vocabulary-only GGUF file with another splitter."""
        writer = gguf.GGUFWriter(path, "llama")
        writer.add_tokenizer_model(self.model)
        writer.add_tokenizer_pre(splitter)
        writer.add_token_list(self.tokens)
        writer.add_token_types(self.classes)
        writer.add_token_merges(self.merges)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.close()

    def is_filler(self, i):
        return self.tokens[i] == f"[PAD{i}]"

    def add_tokens(self, tokenizer, skip=lambda text: False):
        for i, (text, token_class) in enumerate(zip(self.tokens, self.classes)):
            added = token_class in (UNKNOWN, CONTROL, USER_DEFINED)
            if not added or self.is_filler(i) or skip(text):
                continue
            special = token_class != USER_DEFINED
            token = AddedToken(text, normalized=False, special=special)
            (tokenizer.add_special_tokens if special else tokenizer.add_tokens)([token])
        tokenizer.encode_special_tokens = True


def build_byte_level(vocabulary, splitter_name):
    splitter, composes, ignore_merges = SPLITTERS[splitter_name]
    tokenizer = Tokenizer(models.BPE(
        vocab={text: i for i, text in enumerate(vocabulary.tokens)},
        merges=[tuple(line.split(" ", 1)) for line in vocabulary.merges],
        ignore_merges=ignore_merges))
    if composes:
        tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = splitter
    vocabulary.add_tokens(tokenizer)
    return tokenizer


def merges_from_scores(vocab, scores):
    """As transformers' convert_slow_tokenizer.generate_merges."""
    merges = []
    for piece, score in scores.items():
        cuts = [(piece[:i], piece[i:], score) for i in range(1, len(piece))
                if piece[:i] in vocab and piece[i:] in vocab]
        merges += sorted(cuts, key=lambda cut: (vocab[cut[0]], vocab[cut[1]]))
    merges.sort(key=lambda cut: (cut[2], len(cut[0]), len(cut[1])), reverse=True)
    return [(left, right) for left, right, _ in merges]


def build_sentencepiece(vocabulary):
    """User-defined runs of spaces are ordinary pieces of the best score there, not added tokens."""
    def spelled(text):
        return text.replace(" ", "\u2581")

    vocab, scores = {}, {}
    for i, (text, token_class) in enumerate(zip(vocabulary.tokens, vocabulary.classes)):
        vocab[spelled(text)] = i
        if token_class == NORMAL:
            scores[spelled(text)] = vocabulary.scores[i]
        elif token_class == USER_DEFINED:
            scores[spelled(text)] = 0.0
    mergeable = {text: vocab[text] for text in scores}
    unknown = None if vocabulary.unknown is None else vocabulary.tokens[vocabulary.unknown]
    tokenizer = Tokenizer(models.BPE(
        vocab=vocab, merges=merges_from_scores(mergeable, scores), unk_token=unknown, fuse_unk=True,
        byte_fallback=True))
    replace = normalizers.Replace(" ", "\u2581")
    tokenizer.normalizer = (normalizers.Sequence([normalizers.Prepend("\u2581"), replace])
                            if vocabulary.space_prefix else replace)
    vocabulary.add_tokens(tokenizer, skip=lambda text: not text.strip(" \u2581"))
    return tokenizer


def build(vocabulary, splitter_name):
    if vocabulary.model == "gpt2":
        return build_byte_level(vocabulary, splitter_name)
    return build_sentencepiece(vocabulary)


RANGES = {
    "ascii": [(0x20, 0x7F)], "latin": [(0xA0, 0x250)], "greek": [(0x370, 0x530)],
    "hebrew_arabic": [(0x590, 0x700)], "indic": [(0x900, 0xE00)], "thai": [(0xE00, 0xE60)],
    "cjk": [(0x3000, 0x3100), (0x4E00, 0x9FFF)], "hangul": [(0xAC00, 0xD7A4), (0x1100, 0x1200)],
    "marks": [(0x61, 0x7B), (0x300, 0x370)], "symbols": [(0x2000, 0x2C00)],
    "digits": [(0x30, 0x3A), (0xB2, 0xBF), (0x660, 0x66A), (0x2150, 0x2190), (0x2460, 0x24A0),
               (0xFF10, 0xFF1A)],
    "blanks": [(0x20, 0x21)] * 6 + [(0x09, 0x0E), (0x85, 0x86), (0xA0, 0xA1), (0x2000, 0x200C),
                                    (0x2028, 0x202A), (0x3000, 0x3001), (0xFEFF, 0xFF00)],
    "controls": [(0, 0x20), (0x7F, 0xA0), (0x200B, 0x2010)],
    "emoji": [(0x1F300, 0x1FB00), (0x200D, 0x200E), (0xFE0F, 0xFE10), (0x1F1E6, 0x1F200)],
    "new": [(0x323B0, 0x323C0), (0x11DE0, 0x11DEA), (0x1C89, 0x1C8B), (0x16D40, 0x16D80),
            (0x11930, 0x11960), (0x600, 0x620), (0x2E40, 0x2E60)],
    "any": [(0, 0xD800), (0xE000, 0x110000)],
}
SNIPPETS = [
    "don't", "I'LL", "we'Ve", "'ſ", "'''s", " 's", "It's", "it’s", "\r\n", "\n\n", "\n  y",
    "   ", " ", "\t\t", "\t", "1234567", "3.14", "½①Ⅻ", "１２３", "٣٤",
    "def f(x):\n    return x\n", "{\n\t\"a\": [1, 2]\n}", "https://a.b/c?d=e", "café",
    "cafe\u0301", "e\u0323\u0302", "한국어", "\u1112\u1161\u11ab", "नमस्ते", "สวัสดี", "مرحبا",
    "שָׁלוֹם", "中文，字符。", "こんにちは", "👨‍👩‍👧", "🏳️‍🌈", "\u200b", "\ufeff", "\u2028", "\0",
    "<|im_end|>", "<|im_start|>user\n", "<eos>", "</s>", "<tool_call>", "<b>x</b>", "> </",
    "[PAD151665]", "A" * 70, "=" * 90, "ab" * 60, "!" * 33, " " * 40, "\n" * 40, "^", "…", "—",
    "¿", "Ⅳ", "HTTPSession", " Việt", "Kantō", "\u2581", "\u2581\u2581a", "x != y", "hello !",
]


def random_text(rng):
    parts = []
    for _ in range(rng.randrange(1, 30)):
        if rng.random() < 0.4:
            parts.append(rng.choice(SNIPPETS))
            continue
        ranges = RANGES[rng.choice(list(RANGES))]
        for _ in range(rng.randrange(1, 12)):
            first, end = rng.choice(ranges)
            parts.append(chr(rng.randrange(first, end)))
    return "".join(parts)


def file_texts(paths, size):
    """Up to `size` bytes of the UTF-8 files under `paths`, in records of 40,000 characters."""
    names = []
    for path in paths:
        if os.path.isdir(path):
            for folder, _, files in sorted(os.walk(path)):
                names += [os.path.join(folder, name) for name in sorted(files)]
        else:
            names.append(path)
    random.Random(1).shuffle(names)
    used = 0
    for name in names:
        try:
            with open(name, encoding="utf-8", newline="") as file:
                text = file.read()
        except (OSError, UnicodeDecodeError):
            continue
        for first in range(0, len(text), 40000):
            record = text[first:first + 40000]
            used += len(record.encode())
            yield record
        if used >= size:
            return


def run_dump(dump, model, texts, trusted=False):
    data = b"".join(struct.pack("=I", len(text.encode())) + text.encode() for text in texts)
    command = [dump, *(["--trusted"] if trusted else []), model]
    result = subprocess.run(command, input=data, capture_output=True)
    if result.returncode != 0:
        sys.exit(result.stderr.decode())
    at = 0
    for _ in texts:
        count, = struct.unpack_from("=I", result.stdout, at)
        ids = struct.unpack_from(f"={count}i", result.stdout, at + 4)
        offsets = struct.unpack_from(f"={count}I", result.stdout, at + 4 + 4 * count)
        at += 4 + 8 * count
        yield list(ids), list(offsets)


def character_starts(text, offsets):
    """The index of the character each byte offset lies in."""
    index = [i for i, character in enumerate(text) for _ in character.encode()] + [len(text)]
    return [index[offset] for offset in offsets]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("dump")
    parser.add_argument("model")
    parser.add_argument("--text", nargs="*", default=[])
    parser.add_argument("--size", type=float, default=2.0, help="MB of each kind of text")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--splitter")
    parser.add_argument("--trusted", action="store_true")
    arguments = parser.parse_args()
    size = int(arguments.size * 1e6)
    vocabulary = Vocabulary(arguments.model)
    model, splitter = arguments.model, vocabulary.splitter
    if arguments.splitter:
        splitter = arguments.splitter
        model = os.path.join(tempfile.mkdtemp(), "vocabulary.gguf")
        vocabulary.write(model, splitter)
    reference = build(vocabulary, splitter)
    reference.encode_special_tokens = not arguments.trusted
    rng = random.Random(arguments.seed)
    texts = list(file_texts(arguments.text, size))
    from_files = sum(len(text.encode()) for text in texts)
    generated = 0
    while generated < size:
        texts.append(random_text(rng))
        generated += len(texts[-1].encode())
    wrong_ids = wrong_offsets = tokens = 0
    answers = run_dump(arguments.dump, model, texts, arguments.trusted)
    for text, (ids, offsets) in zip(texts, answers):
        expected = reference.encode(text, add_special_tokens=False)
        tokens += len(ids)
        if ids != expected.ids:
            wrong_ids += 1
            if wrong_ids <= 5:
                shared = min(len(ids), len(expected.ids))
                at = next((i for i in range(shared) if ids[i] != expected.ids[i]), shared)
                first = expected.offsets[min(at, len(expected.ids) - 1)][0]
                print(f"ids differ at {at}: got {ids[at:at + 8]}, expected "
                      f"{expected.ids[at:at + 8]}; text {text[first:first + 40]!a}")
        elif vocabulary.has_all_bytes and unicodedata.normalize("NFC", text) == text:
            wrong_offsets += character_starts(text, offsets) != [a for a, _ in expected.offsets]
    print(f"{os.path.basename(arguments.model)} ({splitter}): {len(texts)} texts, "
          f"{from_files} bytes of files, {generated} generated, {tokens} tokens: "
          f"{wrong_ids} texts with other ids, {wrong_offsets} with other offsets")
    return wrong_ids > 0 or wrong_offsets > 0


if __name__ == "__main__":
    sys.exit(main())
