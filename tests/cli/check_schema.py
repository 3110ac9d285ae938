#!/usr/bin/env python3
"""Validates rows, a summary or a profile against the JSON schemas of the repository.

    check_schema.py row FILE...        every line is a row
    check_schema.py summary FILE...    each file is a summary
    check_schema.py profile FILE...    each file is a report of sheaf profile

Beside the schema, sums that it cannot state: prompt = cached + computed, the parts of a latency.
Silent when all is well. Needs the Python package jsonschema (Debian: python3-jsonschema).
"""

import json
import sys
from pathlib import Path

CORE = Path(__file__).resolve().parents[2] / "core"
SCHEMAS = {"row": CORE / "job", "summary": CORE / "job", "profile": CORE / "profile"}
TOLERANCE_MS = 1.0


def refuse_constant(name):
    raise ValueError(f"{name} is not JSON")


def load(text):
    """Strict JSON: no NaN, no lone surrogates."""
    value = json.loads(text, parse_constant=refuse_constant)
    json.dumps(value, ensure_ascii=False).encode("utf-8")
    return value


def sums(row):
    timing, work, tokens = row.get("timing"), row.get("work"), row.get("tokens")
    if row["status"] == "ok" and work["cached"] + work["computed"] != tokens["prompt"]:
        yield "cached + computed is not prompt"
    if tokens and not 0 <= tokens["used"] <= tokens["document"]:
        yield "more tokens are used than the document has"
    if timing:
        first = sum(timing[f"{part}_ms"] for part in ("read", "tokenize", "queued", "prefill"))
        if abs(first - timing["first_token_ms"]) > TOLERANCE_MS:
            yield f"first_token_ms is {timing['first_token_ms']}, its parts are {first}"
        whole = timing["first_token_ms"] + timing["decode_ms"]
        if abs(whole - timing["latency_ms"]) > TOLERANCE_MS:
            yield "latency_ms is not first_token_ms + decode_ms"
        if timing["stalled_ms"] > timing["latency_ms"] + TOLERANCE_MS:
            yield "stalled_ms does not lie inside the latency"


def values(kind, path):
    text = Path(path).read_bytes().decode("utf-8")
    if kind != "row":
        return [load(text)]
    lines = text.split("\n")
    if lines.pop():
        raise ValueError(f"{path} does not end with a whole line")
    return [load(line) for line in lines]


def main(kind, paths):
    try:
        from jsonschema import Draft202012Validator
    except ImportError:
        print("check_schema: python3-jsonschema is not installed: scripts/setup installs it")
        return 1
    schema = json.loads((SCHEMAS[kind] / f"{kind}.schema.json").read_text(encoding="utf-8"))
    Draft202012Validator.check_schema(schema)
    validator = Draft202012Validator(schema)
    complaints = []
    for path in paths:
        for number, value in enumerate(values(kind, path), 1):
            where = f"{path}: {number}"
            complaints += [f"{where}: {error.json_path}: {error.message}"
                           for error in validator.iter_errors(value)]
            if kind == "row":
                complaints += [f"{where}: {complaint}" for complaint in sums(value)]
    print("\n".join(complaints[:20]), end="\n" if complaints else "")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
