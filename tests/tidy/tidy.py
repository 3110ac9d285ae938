#!/usr/bin/env python3
"""Rules of the source that a compiler does not check; run by CTest, one test a rule.

    tidy.py RULE...            check the tree this file stands in
    tidy.py symbols ARCHIVE... check the extern symbols of built libraries (needs nm)
    tidy.py --list             the rules
    tidy.py --self-test        every rule must object to a sample that breaks it

What exceptions.txt names is let through. An exception that nothing needs any more is an error,
so the list only shrinks.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
EXCEPTIONS = Path(__file__).with_name("exceptions.txt")
SKIPPED = {".git", ".cache", "__pycache__", ".venv"}
C_SUFFIXES = {".c", ".h", ".cu", ".cuh"}
COLUMNS_MAX = 100
FUNCTION_LINES_MAX = 70
FILE_LINES_MAX = 600

# Which folders the files of a folder may include from, besides their own.
BASE = ["core/base"]
TOKENIZER = BASE + ["tokenizer"]
CORE_LOW = TOKENIZER + ["core/weights"]
CORE = CORE_LOW + ["core/model", "core/kernels", "core/engine", "core/profile"]
LAYERS = {
    "core/base": [],
    "tokenizer": BASE,
    "core/weights": BASE,
    "core/model": CORE_LOW,
    "core/kernels": BASE + ["core/weights"],
    "core/engine": CORE_LOW + ["core/model", "core/kernels"],
    "core/profile": CORE,
    "core/job": CORE,
    "gpu": CORE,
    "cmd": CORE + ["core/job", "gpu"],
    "tests": CORE + ["core/job", "gpu", "cmd"],
    "scripts": [],  # programs beside sheaf
}

BANNED_EVERYWHERE = "strcpy strcat stpcpy sprintf vsprintf gets strtok atoi atol atoll atof alloca"
BANNED_BELOW_CMD = "printf vprintf puts putchar perror exit _exit _Exit quick_exit abort"
# Where a type, a family or an instruction set may be told apart by name.
SWITCH_FOLDERS = ("core/weights/", "tests/")
SWITCH_FILES = re.compile(r"^core/kernels/|^core/base/cpu_features\.c$|^gpu/launch_config")
FAMILY_FOLDERS = ("core/", "cmd/", "gpu/")


class Tree:
    """The files to check: path relative to the root → text."""

    def __init__(self, files):
        self.files = files

    @staticmethod
    def read(root):
        files = {}
        for folder, folders, names in os.walk(root):
            relative = Path(folder).relative_to(root)
            folders[:] = sorted(
                name
                for name in folders
                if name not in SKIPPED
                and not (relative == Path(".") and re.match(r"build(-|$)", name))
            )
            for name in sorted(names):
                path = Path(folder) / name
                if name in SKIPPED or path.is_symlink() or not path.is_file():
                    continue
                try:
                    files[(relative / name).as_posix()] = path.read_text(encoding="utf-8")
                except UnicodeDecodeError:
                    pass  # binary fixtures
        return Tree(files)

    def c_files(self, *prefixes):
        for path, text in self.files.items():
            if Path(path).suffix in C_SUFFIXES and path.startswith(prefixes or ("",)):
                yield path, text

    def source_files(self):
        """Code written by hand: C, CUDA, Python, shell."""
        for path, text in self.files.items():
            if Path(path).suffix in C_SUFFIXES | {".py"} or text.startswith("#!"):
                yield path, text


def blank(match):
    """Replaces a comment or literal by blanks, keeping its lines."""
    return re.sub(r"[^\n]", " ", match.group())


LITERAL_OR_COMMENT = re.compile(
    r"""/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'""", re.DOTALL
)


def code_of(text):
    """The text without comments, literals and preprocessor lines, line for line."""
    text = LITERAL_OR_COMMENT.sub(blank, text)
    return re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", blank, text, flags=re.MULTILINE)


def without_comments(text):
    return re.sub(
        LITERAL_OR_COMMENT, lambda m: m.group() if m.group()[0] in "\"'" else blank(m), text
    )


def line_at(text, offset):
    return text.count("\n", 0, offset) + 1


def lines(text):
    return enumerate(text.split("\n"), start=1)


def check_columns(tree):
    for path, text in tree.source_files():
        for number, line in lines(text):
            if len(line) > COLUMNS_MAX:
                yield path, number, f"{len(line)} columns, at most {COLUMNS_MAX}"
            if line != line.rstrip() or "\r" in line:
                yield path, number, "blanks at the end of the line"
            if "\t" in line and Path(path).suffix in C_SUFFIXES:
                yield path, number, "a tab"


def functions(text):
    """(first line, last line, name) of each function body at file level."""
    code = code_of(text)
    depth = 0
    start = 0  # of the declaration that may turn out a function
    opened = None
    for match in re.finditer(r"[{};]", code):
        mark = match.group()
        if mark == "{":
            head = code[start : match.start()]
            if depth == 0:
                is_function = re.search(r"\)\s*$", head) is not None
                opened = (start, head) if is_function else None
            depth += 1
            continue
        if mark == "}":
            depth -= 1
            if depth == 0 and opened:
                first = opened[0] + len(opened[1]) - len(opened[1].lstrip())
                name = re.search(r"(\w+)\s*\(", opened[1])
                yield line_at(code, first), line_at(code, match.start()), name.group(1)
        if depth == 0:
            start = match.end()


def check_lengths(tree):
    for path, text in tree.c_files():
        count = text.count("\n")
        if count > FILE_LINES_MAX:
            yield path, count, f"{count} lines, at most {FILE_LINES_MAX}"
        for first, last, name in functions(text):
            if last - first + 1 > FUNCTION_LINES_MAX:
                message = f"'{name}' has {last - first + 1} lines, at most {FUNCTION_LINES_MAX}"
                yield path, first, message


def calls(code, names):
    pattern = r"(?<![\w.>])(" + "|".join(re.escape(name) for name in names.split()) + r")\s*\("
    return re.finditer(pattern, code)


def check_calls(tree):
    for path, text in tree.c_files():
        code = code_of(text)
        for match in calls(code, BANNED_EVERYWHERE):
            yield path, line_at(code, match.start()), f"'{match.group(1)}' is not used here"
        if path.startswith(("cmd/", "tests/", "scripts/")):
            continue
        for match in calls(code, BANNED_BELOW_CMD):
            message = f"'{match.group(1)}' below cmd/: return a status"
            yield path, line_at(code, match.start()), message
        for match in re.finditer(r"\b(stdout|stderr)\b", code):
            yield path, line_at(code, match.start()), f"'{match.group()}' below cmd/"


def check_markers(tree):
    pattern = re.compile(r"\b(TODO|FIXME|XXX|HACK|WIP|TBD)\b")
    for path, text in tree.source_files():
        for number, line in lines(text):
            if path != "tests/tidy/tidy.py" and pattern.search(line):
                yield path, number, f"a leftover '{pattern.search(line).group()}'"


def layer_of(path):
    folders = sorted(LAYERS, key=len, reverse=True)
    return next((layer for layer in folders if path.startswith(layer + "/")), None)


def check_layers(tree):
    include = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"]+)"', re.MULTILINE)
    for path, text in tree.c_files():
        layer = layer_of(path)
        if layer is None:
            yield path, 1, "a source file outside the folders of the architecture"
            continue
        for match in include.finditer(without_comments(text)):
            target = layer_of(match.group(1))
            number = line_at(text, match.start())
            if target is None:
                yield path, number, f"'{match.group(1)}' is not written from the repository's root"
            elif target != layer and target not in LAYERS[layer]:
                yield path, number, f"{layer} may not include from {target}: '{match.group(1)}'"


def check_switches(tree):
    label = re.compile(r"\bcase\s+(QUANT_[A-Z0-9_]+|ISA_[A-Z0-9_]+|FAMILY_[A-Z0-9_]+)\s*:")
    for path, text in tree.c_files():
        if path.startswith(SWITCH_FOLDERS) or SWITCH_FILES.search(path):
            continue
        code = code_of(text)
        for match in label.finditer(code):
            message = f"a switch on '{match.group(1)}': make it a row of a table"
            yield path, line_at(code, match.start()), message


def check_families(tree):
    families = {
        Path(path).stem
        for path in tree.files
        if path.startswith("core/model/families/") and path.endswith(".yaml")
    }
    for path, text in tree.c_files(*FAMILY_FOLDERS):
        code = without_comments(text)
        for match in re.finditer(r'"([^"\\\n]*)"', code):
            if match.group(1) in families:
                message = f"the family '{match.group(1)}' is told apart in C: say it in its YAML"
                yield path, line_at(code, match.start()), message


def check_opening(tree):
    """Each file begins with what it owns and why."""
    for path, text in tree.source_files():
        if path.endswith("__init__.py"):
            continue
        body = text.split("\n", 1)[1] if text.startswith("#!") else text
        is_c = Path(path).suffix in C_SUFFIXES
        first = ("/*", "//") if is_c else ('"""', "#")
        if not body.lstrip("\n").startswith(first):
            yield path, 1, "no opening comment"


def check_names(tree):
    """Base names are unique, so that an extern symbol tells its file."""
    seen = {}
    for path, _ in tree.c_files():
        base = Path(path).stem
        place = Path(path).parent.as_posix()
        other = seen.setdefault(base, place)
        if other != place:
            yield path, 1, f"the base name '{base}' is also used in {other}/"


def check_words(tree):
    """The repository speaks of the product, not of who wrote it, where, or from which host."""
    words = re.compile(
        r"\b(?:sub)?agents?\b|\bsessions?\b|\bclaude\b|\banthropic\b|\bchatgpt\b|\bcopilot\b",
        re.IGNORECASE,
    )
    paths = re.compile(r"(?<![\w.~}])/(?:work|home|root|Users)/\w")
    hosts = re.compile(r"\bpypi\.org|pythonhosted\.org|\bdebian\.org|/simple/", re.IGNORECASE)
    for path, text in tree.files.items():
        if path == "tests/tidy/tidy.py":
            continue
        for number, line in lines(text):
            for pattern, what in ((words, "word"), (paths, "path"), (hosts, "host")):
                match = pattern.search(line)
                if match:
                    yield path, number, f"a {what} that does not belong here: '{match.group()}'"


def defined_symbols(archive):
    """(object's base name, symbol) for each extern symbol of a library or program."""
    listing = subprocess.run(
        ["nm", "--extern-only", "--defined-only", "--print-file-name", archive],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    for line in listing.splitlines():
        where, _, rest = line.rpartition(": ") if ": " in line else line.rpartition(":")
        member = re.split(r"[:/]", where)[-1]
        yield member.split(".")[0], rest.split()[-1]


def symbol_is_named(base, symbol):
    return symbol == base or symbol.startswith(base + "_") or symbol == "main"


def check_symbols(archives):
    for archive in archives:
        for base, symbol in defined_symbols(archive):
            if not symbol_is_named(base, symbol):
                yield f"{base}.c", 1, f"extern symbol '{symbol}' does not begin with '{base}'"


RULES = {
    "columns": check_columns,
    "lengths": check_lengths,
    "calls": check_calls,
    "markers": check_markers,
    "layers": check_layers,
    "switches": check_switches,
    "families": check_families,
    "opening": check_opening,
    "names": check_names,
    "words": check_words,
}

# rule → (path, text) that breaks it, and one that does not
SAMPLES = {
    "columns": (("core/base/a.c", "x" * 101), ("core/base/a.c", "é" * 100)),
    "lengths": (
        ("core/base/a.c", "static int f(void)\n{\n" + "x;\n" * 70 + "}\n"),
        ("core/base/a.c", "int t[] = {\n" + "1,\n" * 90 + "};\nint f(void) {" + "{}\n" * 69 + "}"),
    ),
    "calls": (
        ("core/job/a.c", "f(); exit (1);"),
        ("core/job/a.c", 'on_exit_(1); /* exit(1) */ "gets("'),
    ),
    "markers": (("core/base/a.c", "/* TODO: later */"), ("core/base/a.c", "TODOS = 1;")),
    "layers": (
        ("core/model/a.c", '#include "core/engine/engine.h"\n'),
        ("core/engine/a.c", '#include <x.h>\n#include "core/model/model.h"\n'),
    ),
    "switches": (("core/engine/a.c", "case QUANT_Q4_1:"), ("core/weights/a.c", "case QUANT_Q4_1:")),
    "families": (
        ("core/engine/a.c", 'is(x, "llama")'),
        ("core/engine/a.c", '/* "llama" */ is("l")'),
    ),
    "opening": (("core/base/a.c", "#include <a.h>\n"), ("core/base/a.c", "/* Owns a. */\n")),
    "names": (("core/job/other.c", ""), ("core/base/other.h", "")),
    "words": (("a.md", "see /work/x"), ("a.md", "see network/x, ~/work/x")),
}
SAMPLE_TREE = {"core/model/families/llama.yaml": "", "core/base/other.c": "/* */\n"}


def self_test():
    failures = []
    for rule, (bad, good) in SAMPLES.items():
        for sample, wanted in ((bad, True), (good, False)):
            objections = list(RULES[rule](Tree(SAMPLE_TREE | dict([sample]))))
            if bool(objections) != wanted:
                failures.append(f"{rule}: {'accepts' if wanted else 'refuses'} {sample[1][:60]!r}")
    for base, symbol, good in (("a", "a_b", True), ("a", "ab", False), ("x", "main", True)):
        if symbol_is_named(base, symbol) != good:
            failures.append(f"symbols: {symbol} in {base}.c")
    failures += [f"no sample for rule '{rule}'" for rule in RULES.keys() - SAMPLES.keys()]
    if not any("no longer needed" in line for line in judge("columns", [], [("columns", "a", "")])):
        failures.append("exceptions: one that nothing needs is accepted")
    return failures


def read_exceptions():
    """Lines of "rule path [text]": objections of that rule on that path holding that text."""
    exceptions = []
    for line in EXCEPTIONS.read_text(encoding="utf-8").splitlines():
        fields = line.split("#")[0].split(None, 2)
        if fields:
            exceptions.append((fields[0], fields[1], fields[2].strip() if len(fields) > 2 else ""))
    return exceptions


def judge(rule, objections, exceptions):
    """The lines to print: objections without an exception, exceptions without an objection."""
    used = set()
    printed = []
    for path, number, message in objections:
        allowed = [e for e in exceptions if e[:2] == (rule, path) and e[2] in message]
        used.update(allowed)
        if not allowed:
            printed.append(f"{path}:{number}: {rule}: {message}")
    for exception in exceptions:
        if exception[0] == rule and exception not in used:
            printed.append(f"exceptions.txt: {' '.join(exception)}: no longer needed, remove it")
    return printed


def main(arguments):
    if arguments == ["--list"]:
        print("\n".join(RULES))
        return 0
    if arguments == ["--self-test"]:
        printed = self_test()
    elif arguments[:1] == ["symbols"]:
        printed = judge("symbols", check_symbols(arguments[1:]), read_exceptions())
    elif arguments and all(rule in RULES for rule in arguments):
        tree = Tree.read(ROOT)
        exceptions = read_exceptions()
        printed = [p for rule in arguments for p in judge(rule, RULES[rule](tree), exceptions)]
    else:
        print(__doc__, file=sys.stderr)
        return 2
    print("\n".join(printed) if printed else "nothing to object to")
    return 1 if printed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
