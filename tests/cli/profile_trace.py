#!/usr/bin/env python3
"""Checks a trace of `sheaf profile` more strictly than ui.perfetto.dev reads it.

    profile_trace.py TRACE.json

Every event has the fields of its kind; complete events of one thread nest or follow each other;
threads that have events have names; times are finite and not negative; counters are numbers.
Silent when all is well.
"""

import json
import math
import sys
from pathlib import Path

ROUNDING_US = 0.002  # of start and duration, written with three decimals each


def refuse_constant(name):
    raise ValueError(f"{name} is not JSON")


def is_time(value):
    return isinstance(value, (int, float)) and math.isfinite(value) and value >= 0


def check_nesting(thread, slices):
    open_ends = []
    for start, duration, name in sorted(slices, key=lambda item: (item[0], -item[1])):
        while open_ends and open_ends[-1] <= start + ROUNDING_US:
            open_ends.pop()
        if open_ends and start + duration > open_ends[-1] + ROUNDING_US:
            yield f"thread {thread}: '{name}' at {start} overlaps the end of another"
        open_ends.append(start + duration)


def check(trace):
    slices, named = {}, set()
    if set(trace) != {"displayTimeUnit", "traceEvents"}:
        yield f"unknown keys: {sorted(trace)}"
    for number, event in enumerate(trace["traceEvents"]):
        kind = event.get("ph")
        if kind == "M":
            if event["name"] not in ("process_name", "thread_name") or not event["args"]["name"]:
                yield f"event {number}: metadata without a name"
            if event["name"] == "thread_name":
                named.add(event["tid"])
        elif kind == "X":
            if not is_time(event["ts"]) or not is_time(event["dur"]) or not event["name"]:
                yield f"event {number}: not a complete event"
            slices.setdefault(event["tid"], []).append((event["ts"], event["dur"], event["name"]))
        elif kind == "C":
            if not is_time(event["ts"]) or not all(map(is_time, event["args"].values())):
                yield f"event {number}: a counter that is not a number"
        else:
            yield f"event {number}: unknown kind {kind}"
    for thread, found in slices.items():
        if thread not in named:
            yield f"thread {thread} has no name"
        yield from check_nesting(thread, found)
    if not any(name.startswith("step") for _, _, name in slices.get(0, [])):
        yield "no step"


def main(path):
    text = Path(path).read_bytes().decode("utf-8")
    complaints = list(check(json.loads(text, parse_constant=refuse_constant)))
    print("\n".join(complaints[:20]), end="\n" if complaints else "")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
