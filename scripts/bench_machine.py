"""The machine under a timing: what it is, whether it is idle, and who used it meanwhile.

A timing counts only on an idle machine, so every run waits for one and then reports what share
of the processors other programs took while it ran. What a program uses includes its children.
"""

import contextlib
import os
import platform
import subprocess
import sys
import time
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")
ISA_FLAGS = ["avx2", "fma", "avx512f", "avx512_vnni", "avx512_bf16", "avx512_fp16", "amx_bf16"]


NEIGHBOURS = ("roaming", "pinned")  # a busy process: left to the scheduler, or on one processor


def cache_folder():
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(cache) / "sheaf" / "bench"


def processor_count():
    return len(os.sched_getaffinity(0))


def busy_seconds():
    """Seconds all processors have worked since boot, stolen ones included: they are lost to us."""
    with open("/proc/stat", encoding="ascii") as file:
        fields = [int(field) for field in file.readline().split()[1:9]]
    user, nice, system, _idle, _iowait, irq, softirq, steal = fields
    return (user + nice + system + irq + softirq + steal) / TICKS


def stat_fields(pid):
    """The fields of /proc/PID/stat after the program's name, from the state on."""
    with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
        return file.read().rsplit(")", 1)[1].split()


def process_tree(root):
    """The process and all that descend from it: pid → its fields in /proc/PID/stat."""
    fields, children = {}, {}
    for pid in (int(name) for name in os.listdir("/proc") if name.isdigit()):
        with contextlib.suppress(OSError, IndexError):
            fields[pid] = stat_fields(pid)
            children.setdefault(int(fields[pid][1]), []).append(pid)
    tree, waiting = {}, [root]
    while waiting:
        pid = waiting.pop()
        if pid in fields:
            tree[pid] = fields[pid]
            waiting += children.get(pid, [])
    return tree


def tree_seconds(root):
    """Processor time of a process and its descendants, those it has waited for included."""
    return sum(sum(map(int, fields[11:15])) for fields in process_tree(root).values()) / TICKS


def tree_peak_bytes(root):
    """The sum of the most memory each process of the tree had: what they share counts twice."""
    total = 0
    for pid in process_tree(root):
        with contextlib.suppress(OSError), open(f"/proc/{pid}/status", encoding="utf-8") as file:
            total += sum(int(line.split()[1]) for line in file if line.startswith("VmHWM"))
    return total * 1024


@contextlib.contextmanager
def neighbour(kind):
    """A process that spins meanwhile; none if `kind` is None."""
    if kind is None:
        yield
        return
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as process:
        try:
            if kind == "pinned":
                os.sched_setaffinity(process.pid, {min(os.sched_getaffinity(0))})
            yield
        finally:
            process.kill()


def own_seconds():
    """Processor time of this program and of the children it has waited for."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def wait_for_idle(limit_seconds, share=0.1, window=1.5):
    """Waits until less than `share` of the machine is busy; returns the last share seen."""
    started = time.monotonic()
    while True:
        before, clock = busy_seconds(), time.monotonic()
        time.sleep(window)
        busy = (busy_seconds() - before) / (time.monotonic() - clock) / os.cpu_count()
        if busy < share or time.monotonic() - started > limit_seconds:
            return busy


class Meter:
    """The share of the machine that others use between construction and others()."""

    def __init__(self, pid=None):
        self.pid = pid
        self.clock, self.busy, self.own = time.monotonic(), busy_seconds(), self._own()

    def _own(self):
        return own_seconds() + (tree_seconds(self.pid) if self.pid else 0)

    def others(self):
        elapsed = time.monotonic() - self.clock
        other = busy_seconds() - self.busy - (self._own() - self.own)
        return max(0.0, other / elapsed / os.cpu_count())


def cpu_fields():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        lines = [line.split(":", 1) for line in file.read().split("\n\n")[0].split("\n")]
    return {parts[0].strip(): parts[1].strip() for parts in lines if len(parts) == 2}


def has_flag(flag):
    return flag in cpu_fields().get("flags", "").split()


def describe():
    """One line: processor, instruction sets, memory, kernel."""
    fields = cpu_fields()
    present = [flag for flag in ISA_FLAGS if flag in fields.get("flags", "").split()]
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    name = fields.get("model name", platform.machine())
    identity = f"family {fields.get('cpu family', '?')} model {fields.get('model', '?')}"
    return (
        f"{name} ({identity}), {processor_count()} processors, {' '.join(present)}, "
        f"{memory:.0f} GiB, {platform.system()} {platform.release()}"
    )
