#!/usr/bin/env python3
"""The same bytes out, however a run is cut into steps: the matrix of promise 3 for one model on one
instruction set.

    identity.py SHEAF MODEL ISA

For greedy decoding, for sampling, for an int8 KV cache and for int8 matmuls, a run is repeated
with other batch sizes, threads, chunks, orders of input, without the prefix cache, with other
neighbours, resumed after an interruption. All of a row but `index`, `timing` and `work` must be
equal. The documents share beginnings of different lengths, so that pages are found in the prefix
cache and left in their middle, and end around the borders of pages (64 tokens) and chunks. Scalar
code and instrumented programs are slow: they run fewer documents, the latter fewer variants, and
both together greedy decoding alone. Exit status 77: this machine has not the instruction set.
"""

import json
import os
import random
import subprocess
import sys
from pathlib import Path

MODES = {
    "greedy": [],
    "sampled": ["--temperature", "0.8", "--top-p", "0.95", "--seed", "7"],
    "int8": ["--kv-dtype", "int8"],
    "int8 matmul": ["--matmul-dtype", "int8"],
}
VARIANTS = {
    "one sequence": ["--max-sequences", "1"],
    "32 sequences": ["--max-sequences", "32"],
    "1 thread": ["--threads", "1"],
    "2 threads": ["--threads", "2"],
    "3 threads": ["--threads", "3"],
    "16 tokens a step": ["--batch-tokens", "16"],
    "64 tokens a step": ["--batch-tokens", "64"],
    "512 tokens a step": ["--batch-tokens", "512"],
    "no prefix cache": ["--prefix-cache", "off"],
    "guesses": ["--speculate", "lookup"],
    "guesses, few of all": ["--speculate", "lookup", "--max-sequences", "4", "--batch-tokens", "9",
                            "--threads", "2"],
    "few of all": ["--max-sequences", "3", "--batch-tokens", "21", "--threads", "3"],
    "no cache, few of all": ["--max-sequences", "5", "--batch-tokens", "40",
                             "--prefix-cache", "off"],
}
SLOW_VARIANTS = ("guesses", "one sequence", "3 threads", "16 tokens a step", "no cache, few of all")
SKIPPED = 77
WORDS = "the archive keeps what office forgets letter rent water box ledger page date river".split()


def write_documents(folder, count):
    rng = random.Random(5)
    folder.mkdir()
    shared = " ".join(rng.choice(WORDS) for _ in range(150))
    names = []
    for number in range(count):
        start = shared[:(0, 300, 301, 90, 800, 0)[number % 6]]
        text = start + " ".join(rng.choice(WORDS) for _ in range(rng.randrange(1, 70)))
        (folder / f"{number:02}.txt").write_text(f"{text} {number}")
        names.append(str(folder / f"{number:02}.txt"))
    return names


class Matrix:
    def __init__(self, sheaf, model, isa):
        self.base = [sheaf, "run", "-q", "--model", model, "--isa", isa, "-p", "Summarize.", "-n",
                     "20", "--too-long", "keep-tail"]
        self.instrumented = bool(os.environ.get("SANITIZER"))
        count = (16, 6, 3)[(isa == "scalar") + self.instrumented]
        self.names = write_documents(Path("documents"), count)
        self.different = 0
        self.runs = 0

    def run(self, options, names=None, output=None):
        """id → row, of one run over the documents named."""
        Path("list").write_text("".join(name + "\n" for name in names or self.names))
        command = self.base + ["--files-from", "list"] + options
        if output:
            command += ["-o", output, "--resume"]
        self.runs += 1
        result = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
        if b"this machine has" in result.stderr:
            print(result.stderr.decode(), file=sys.stderr)
            sys.exit(SKIPPED)
        if result.returncode != 0:
            sys.exit(f"{' '.join(options)}: exit {result.returncode}: {result.stderr.decode()}")
        text = Path(output).read_text() if output else result.stdout.decode()
        rows = [json.loads(line) for line in text.split("\n") if line]
        return text, {row["id"]: row for row in rows}

    def compare(self, mode, what, expected, found, names=None):
        for name in names or self.names:
            left, right = ({key: value for key, value in rows[name].items()
                            if key not in ("index", "timing", "work")}
                           for rows in (expected, found))
            if left != right:
                self.different += 1
                keys = sorted(key for key in left if left[key] != right.get(key))
                print(f"{mode}, {what}: {name} differs in {', '.join(keys)}")

    def check(self, mode, options):
        text, expected = self.run(options)
        for what, variant in VARIANTS.items():
            if self.instrumented and what not in SLOW_VARIANTS:
                continue
            self.compare(mode, what, expected, self.run(options + variant)[1])
        shuffled = random.Random(3).sample(self.names, len(self.names))
        self.compare(mode, "another order", expected, self.run(options, shuffled)[1])
        few = shuffled[:3]
        self.compare(mode, "other neighbours", expected, self.run(options, few)[1], few)
        lines = text.splitlines(keepends=True)
        Path(f"{mode}.jsonl").write_text("".join(lines[:2]) + lines[2][:40])
        resumed = self.run(options, None, f"{mode}.jsonl")[1]
        self.compare(mode, "interrupted and resumed", expected, resumed)
        texts = {row["text"] for row in expected.values()}
        if len(texts) < len(self.names) // 2:
            print(f"{mode}: {len(texts)} texts of {len(self.names)} documents: too few to compare")
        return {name: row["text"] for name, row in expected.items()}


def main(sheaf, model, isa):
    matrix = Matrix(sheaf, model, isa)
    modes = list(MODES) if isa != "scalar" or not matrix.instrumented else ["greedy"]
    texts = [matrix.check(mode, MODES[mode]) for mode in modes]
    if len(texts) > 1 and texts[0] == texts[1]:
        print("sampling changes nothing")
    enough = matrix.runs >= len(modes) * (len(SLOW_VARIANTS) + 4)
    print(f"enough runs: {enough}, {matrix.different} rows differ")


if __name__ == "__main__":
    main(*sys.argv[1:])
