#!/usr/bin/env python3
"""Runs one case of the command line tests and compares what came out.

    run_case.py [--bless] --sheaf PROGRAM [--tiny DIR] [--samples DIR] [--sanitizer NAME] CASE.sh

A case is NAME.sh, run by sh in an empty folder of its own, with
    SHEAF      the program            SAMPLES    the samples/ folder of the repository
    TINY       the tiny models        CASE       the folder the case stands in
    MODELS     where scripts/fetch_model puts models: a case that needs one that is absent skips
    SANITIZER  what the program was built with ("" for nothing)
    FAKECUDA_LIBRARY  a libcuda that simulates a GPU ("" where there is none)
Beside it stand, where they matter:
    NAME.stdout  the exact output (none: empty)
    NAME.stderr  patterns, a line each: `*` stands for any text, a line `...` for any lines (none:
                 empty)
    NAME.exit    the exit status (none: 0)
In what is compared, the folder of the run is written $DIR, and the other paths by their names.
A case that exits with 77 is skipped; its last line on stderr says why.
--bless writes what came out as what is expected; stderr only where it did not match.
"""

import argparse
import difflib
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

SKIPPED = 77
TIMEOUT_S = 240
PLACES = ("SHEAF", "TINY", "SAMPLES", "MODELS", "CASE")


def environment(options, case, folder):
    """Nothing of the user's settings reaches the program."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    kept = {name: os.environ[name] for name in ("PATH", "ASAN_OPTIONS", "TSAN_OPTIONS", "TMPDIR")
            if name in os.environ}
    return kept | {
        "HOME": f"{folder}/home",
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
        "SHEAF": options.sheaf,
        "TINY": options.tiny,
        "SAMPLES": options.samples,
        "MODELS": os.path.join(cache, "sheaf", "models"),
        "SANITIZER": options.sanitizer,
        "FAKECUDA_LIBRARY": options.fakecuda,
        "CASE": str(case.parent),
    }


def named(text, places):
    """Replaces paths of this machine by the names they have in cases, longest first."""
    for name, path in sorted(places.items(), key=lambda item: -len(item[1])):
        if path:
            text = text.replace(path, f"${name}")
    return text


def run(options, case):
    """The exit status, stdout and stderr of the case."""
    with tempfile.TemporaryDirectory(prefix="sheaf-cli-") as top:
        folder = os.path.join(os.path.realpath(top), "run")
        os.mkdir(folder)
        variables = environment(options, case, os.path.dirname(folder))
        os.mkdir(variables["HOME"])
        result = subprocess.run(
            ["sh", str(case)],
            cwd=folder,
            env=variables,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=TIMEOUT_S,
            check=False,
        )
        places = {name: variables[name] for name in PLACES}
        places["DIR"] = folder
        outputs = [
            named(stream.decode("utf-8", "backslashreplace"), places)
            for stream in (result.stdout, result.stderr)
        ]
    return result.returncode, outputs[0], outputs[1]


def pattern_of(lines):
    """The regular expression of a .stderr file."""
    expression = ""
    for line in lines:
        if line == "...":
            expression += r"(?:[^\n]*\n)*?"
        else:
            expression += r"[^\n]*".join(re.escape(piece) for piece in line.split("*")) + r"\n"
    return re.compile(expression)


def ended(text):
    """As lines: a last line without newline is marked, so that the difference shows."""
    return text if not text or text.endswith("\n") else text + "\\ no newline at the end\n"


def difference(name, expected, found):
    return "\n".join(
        difflib.unified_diff(
            expected.splitlines(),
            found.splitlines(),
            f"expected {name}",
            f"found {name}",
            lineterm="",
        )
    )


def read(path, absent):
    return path.read_text(encoding="utf-8") if path.exists() else absent


def compare(case, status, stdout, stderr):
    """What differs from the expectation, as text for a person; empty when nothing does."""
    complaints = []
    expected_status = int(read(case.with_suffix(".exit"), "0"))
    if status != expected_status:
        complaints.append(f"exit status {status}, expected {expected_status}")
    expected = read(case.with_suffix(".stdout"), "")
    if ended(stdout) != ended(expected):
        complaints.append(difference("stdout", ended(expected), ended(stdout)))
    patterns = read(case.with_suffix(".stderr"), "")
    if not pattern_of(patterns.splitlines()).fullmatch(ended(stderr)):
        complaints.append(difference("stderr", patterns, ended(stderr)))
    return complaints


def write_or_remove(path, text):
    if text:
        path.write_text(text, encoding="utf-8")
    else:
        path.unlink(missing_ok=True)


def bless(case, status, stdout, stderr):
    write_or_remove(case.with_suffix(".stdout"), stdout)
    write_or_remove(case.with_suffix(".exit"), f"{status}\n" if status else "")
    patterns = read(case.with_suffix(".stderr"), "")
    if not pattern_of(patterns.splitlines()).fullmatch(ended(stderr)):
        write_or_remove(case.with_suffix(".stderr"), stderr)


def options_of(arguments):
    source = Path(__file__).resolve().parents[2]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("case", type=Path, metavar="CASE.sh")
    parser.add_argument("--sheaf", required=True)
    parser.add_argument("--tiny", default="")
    parser.add_argument("--samples", default=str(source / "samples"))
    parser.add_argument("--sanitizer", default="")
    parser.add_argument("--fakecuda", default="")
    parser.add_argument("--bless", action="store_true")
    return parser.parse_args(arguments)


def main(arguments):
    options = options_of(arguments)
    case = options.case.resolve()
    try:
        status, stdout, stderr = run(options, case)
    except subprocess.TimeoutExpired:
        print(f"{case.name}: still running after {TIMEOUT_S} s")
        return 1
    if status == SKIPPED:
        print("SKIPPED:", (stderr.strip() or "no reason given").splitlines()[-1])
        return SKIPPED
    if options.bless:
        bless(case, status, stdout, stderr)
        return 0
    complaints = compare(case, status, stdout, stderr)
    for complaint in complaints:
        print(complaint)
    if complaints and not any("stderr" in complaint for complaint in complaints) and stderr:
        print(f"stderr was:\n{stderr}")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
