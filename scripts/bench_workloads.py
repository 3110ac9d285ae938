"""The workloads: real documents cut to size with the model's own tokenizer, and their prompts.

    w1  16 documents of 6,000 tokens, 64 new ones: summaries of long documents
    w2  128 of 512, 4 new: classification
    w3  one of 7,700, 128 new: the latency of one long document
    w4  one of 6,000 asked 16 questions, 32 new: a shared prefix
    w5  32 of 200, 256 new: decoding in a batch
    short  one of 100, 8 new: how soon the first row is there
    more   48 like w1's, which make it two and four times as long

A scaled workload takes the first documents of the whole one. The texts are the documentation in
three Debian packages unless a folder is named. A document may be off its size by a line: both
engines get the same token ids, which `sheaf plan --show-prompt` renders.
"""

import gzip
import json
import random
import re
import subprocess
import zlib
from pathlib import Path
from typing import NamedTuple

import bench_install

PACKAGES = ["perl-doc", "debian-policy", "python3-doc"]
TEXT_NAMES = re.compile(r"\.(pod|txt|rst|md)(\.gz)?$")
TEXT_BYTES_MIN = 10_000  # shorter files are indices and notices
LINES_AT_ONCE = 4000
SHORT = "short"  # the document of the start-up measurement
MORE = "more"

INSTRUCTION = (
    "Read the document below from its first line to its last before you write anything. Then say, "
    "in two or three plain sentences of your own, what the document deals with, which reader it "
    "was written for, and which of its statements that reader can least afford to miss. Keep to "
    "what is written there: no guesses, no advice and no quotation of more than a few words. A "
    "document that stops in the middle is an excerpt; describe the excerpt."
)
QUESTIONS = [
    "What does this text deal with?",
    "Which reader is it meant for?",
    "Which program does it name first?",
    "What does it warn of?",
    "Which file or folder does it mention?",
    "Does it contain an example, and of what?",
    "Which option or setting does it explain?",
    "What does it advise?",
    "Which version does it speak of?",
    "What happens when something fails?",
    "Name one function or command in it.",
    "Which default does it state?",
    "What is its longest part about?",
    "What does it leave out?",
    "What would be a fitting title?",
    "What must be done first?",
]


class Shape(NamedTuple):
    documents: int
    tokens: int
    new_tokens: int
    asks_questions: bool = False


SHAPES = {
    "w1": Shape(16, 6000, 64),
    "w2": Shape(128, 512, 4),
    "w3": Shape(1, 7700, 128),
    "w4": Shape(1, 6000, 32, asks_questions=True),
    "w5": Shape(32, 200, 256),
    SHORT: Shape(1, 100, 8),
    MORE: Shape(48, 6000, 64),
}


class Workload(NamedTuple):
    name: str
    documents: Path  # JSONL: id, text
    prompt_options: list  # of sheaf's run and plan
    new_tokens: int
    request_ids: list


def fetch_texts(say):
    """The default texts."""
    say(f"reading the documentation in {', '.join(PACKAGES)}")
    return bench_install.unpack_debian("texts", PACKAGES)


def read_text(path):
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return data.decode("utf-8", errors="replace")


def text_lines(folder, seed):
    """The lines of all large texts, files in shuffled order."""
    paths = sorted(
        path
        for path in folder.rglob("*")
        if TEXT_NAMES.search(path.name) and path.is_file() and not path.is_symlink()
    )
    random.Random(seed).shuffle(paths)
    for path in paths:
        text = read_text(path)
        if len(text) >= TEXT_BYTES_MIN:
            yield from text.splitlines(keepends=True)


def write_jsonl(path, objects):
    path.write_text("".join(json.dumps(item) + "\n" for item in objects), encoding="utf-8")


class LineCounter:
    """Lines with their token counts, counted a few thousand at a time."""

    def __init__(self, sheaf, model, lines, scratch):
        self.command = [sheaf, "tokenize", "-q", "-m", model, scratch]
        self.lines, self.scratch = lines, scratch

    def _next_lines(self):
        batch = []
        for line in self.lines:
            if line.strip():
                batch.append(line)
            if len(batch) == LINES_AT_ONCE:
                break
        return batch

    def _counts(self, batch):
        write_jsonl(self.scratch, ({"id": str(i), "text": line} for i, line in enumerate(batch)))
        output = subprocess.run(self.command, check=True, capture_output=True, text=True).stdout
        rows = [json.loads(line)["ids"] for line in output.splitlines()]
        has_start_token = len({ids[0] for ids in rows}) == 1
        return [len(ids) - has_start_token for ids in rows]

    def __iter__(self):
        while batch := self._next_lines():
            yield from zip(batch, self._counts(batch))


def cut_document(counted_lines, tokens):
    text, count = [], 0
    for line, line_tokens in counted_lines:
        text.append(line)
        count += line_tokens
        if count >= tokens:
            return "".join(text)
    raise SystemExit("bench: too little text: name a larger folder with --texts")


def make_documents(sheaf, model, texts, folder, seed):
    """Every workload's documents in full size; done once a folder and set of shapes."""
    done = folder / f"done-{zlib.crc32(repr(SHAPES).encode()):08x}"
    if done.exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    counted = iter(LineCounter(sheaf, model, text_lines(texts, seed), folder / "lines.jsonl"))
    for name, shape in SHAPES.items():
        write_jsonl(
            folder / f"{name}.jsonl",
            (
                {"id": f"{name}-{i:03}", "text": cut_document(counted, shape.tokens)}
                for i in range(shape.documents)
            ),
        )
    questions = ({"id": f"q{i:02}", "prompt": text} for i, text in enumerate(QUESTIONS))
    write_jsonl(folder / "questions.jsonl", questions)
    (folder / "lines.jsonl").unlink()
    done.touch()


def take(folder, name, scale):
    """A workload cut to `scale` of its documents, at least one; w1 may be made up to 4 times."""
    shape = SHAPES[name]
    count = max(1, round(shape.documents * scale))
    lines = (folder / f"{name}.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    if count > len(lines):
        lines += (folder / f"{MORE}.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    lines = lines[:count]
    path = folder / f"{name}-{count}.jsonl"
    path.write_text("".join(lines), encoding="utf-8")
    ids = [json.loads(line)["id"] for line in lines]
    if not shape.asks_questions:
        return Workload(name, path, ["-p", INSTRUCTION], shape.new_tokens, ids)
    ids = [f"{document}#q{i:02}" for document in ids for i in range(len(QUESTIONS))]
    options = ["--prompts", str(folder / "questions.jsonl")]
    return Workload(name, path, options, shape.new_tokens, ids)
