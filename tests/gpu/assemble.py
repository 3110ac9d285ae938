#!/usr/bin/env python3
"""Assembles every PTX file for every compute capability and compares what ptxas says of each
kernel with the table below: registers, spills, static shared memory. A capability takes the
nearest file at or below it, as a driver would; a file that none takes is assembled for the first
one (ptxas 13 has nothing below 7.5, but takes its PTX).

    assemble.py --ptxas PTXAS --capabilities 75,80,86 FOLDER    files <name>.<capability>.ptx
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

# Kernel → most registers, spilled bytes, static shared bytes. The first match counts.
LIMITS = [
    (r"attention_prefill_\w+_(128|256)", 255, 0, 0),
    (r"attention_decode_\w+_256", 255, 0, 0),
    (r"attention_\w+", 255, 0, 0),
    (r"linear_\w+_few", 96, 0, 24 << 10),
    (r"linear_\w+_many", 168, 0, 40 << 10),
    (r"\w+", 64, 0, 8 << 10),
]


def assemble(ptxas, path, capability):
    """(kernel, registers, stack bytes, spilled bytes, shared bytes) of each kernel of a file."""
    with tempfile.TemporaryDirectory() as folder:
        command = [ptxas, "-v", f"-arch=sm_{capability}", path, "-o", Path(folder) / "out.cubin"]
        done = subprocess.run(command, capture_output=True, text=True)
    text = done.stdout + done.stderr
    if done.returncode != 0:
        raise RuntimeError(f"{path.name} for {capability}: {text.strip()}")
    kernels = []
    for part in text.split("Compiling entry function '")[1:]:
        name = part.split("'", 1)[0]
        stack, stores, loads = map(
            int,
            re.search(
                r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", part
            ).groups(),
        )
        registers = int(re.search(r"Used (\d+) registers", part).group(1))
        shared = re.search(r"(\d+) bytes smem", part)
        kernels.append(
            (name, registers, stack, stores + loads, int(shared.group(1)) if shared else 0)
        )
    if not kernels:
        raise RuntimeError(f"{path.name} for {capability}: no kernels")
    return kernels


def objections(capability, kernels):
    for name, registers, stack, spilled, shared in kernels:
        _, registers_max, spilled_max, shared_max = next(
            limit for limit in LIMITS if re.fullmatch(limit[0], name)
        )
        for what, value, most in (
            ("registers", registers, registers_max),
            ("spilled bytes", spilled, spilled_max),
            ("bytes of stack", stack, 0),
            ("shared bytes", shared, shared_max),
        ):
            if value > most:
                yield f"{name} for {capability}: {value} {what}, at most {most}"


def work(folder, capabilities):
    """(file, capability) pairs: for each capability the nearest file at or below it."""
    files = {}
    for path in sorted(folder.glob("*.ptx")):
        name, own = path.name.split(".")[:2]
        files.setdefault(name, {})[int(own)] = path
    for own in files.values():
        pairs = {}
        for capability in capabilities:
            nearest = max((c for c in own if c <= capability), default=None)
            if nearest:
                pairs[capability] = own[nearest]
        yield from ((path, capability) for capability, path in pairs.items())
        rest = [path for path in own.values() if path not in pairs.values()]
        yield from ((path, min(capabilities)) for path in rest)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ptxas", required=True)
    parser.add_argument("--capabilities", required=True)
    parser.add_argument("--list", action="store_true", help="print what each kernel takes")
    parser.add_argument("folder", type=Path)
    arguments = parser.parse_args()
    pairs = list(work(arguments.folder, [int(c) for c in arguments.capabilities.split(",")]))
    wrong = []
    count = 0
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        results = pool.map(lambda pair: assemble(arguments.ptxas, *pair), pairs)
        for (path, capability), kernels in zip(pairs, results):
            count += len(kernels)
            wrong += objections(capability, kernels)
            for kernel in kernels if arguments.list else []:
                print(capability, path.name, *kernel)
    if not count:
        wrong.append(f"no PTX in {arguments.folder}")
    print("\n".join(wrong) or f"{count} kernels assembled, all within their limits")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
