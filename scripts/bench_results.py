"""Measurements as JSON lines, appended as they come, and what they say: medians, tables, goals.

A line is one run of one engine in one setting at one task, or why it failed; its "key" holds all
that must be equal for two measurements to be of the same thing, so an interrupted bench goes on
where it stopped.
"""

import json
import math
import statistics
from typing import NamedTuple

import bench_machine

BEGINNING = 20  # characters
DISTURBED_SHARE = 0.1  # of the machine, used by others during a timing
RIGHT_SHARE = 0.5  # of a rival's texts that must begin as sheaf's for its speed to count
OURS = "sheaf"
INT8 = "sheaf, int8 KV"
FIRST = "w3-first"
MEMORY_EXTRA_BYTES = 150e6
FIRST_ROW_SECONDS_MAX = 0.4
START_INCLUDED_RATIO = 4.0
RATIOS = {"w1": 2.0, "w2": 2.0, FIRST: 1.8, "w3": 1.3, "w4": 2.0, "w5": 2.0}
RATIOS_WITH_AMX = {**RATIOS, "w3": 2.0, "w5": 1.6}
INT8_RATIOS_WITH_AMX = {"w5": 2.5}


class Results:
    """The measurements of one model on one machine, backed by a file if there is one."""

    def __init__(self, path):
        self.path, self.lines = path, []
        if path and path.exists():
            text = path.read_text(encoding="utf-8")
            self.lines = [json.loads(line) for line in text.splitlines()]

    def add(self, line):
        self.lines.append(line)
        if self.path:
            with open(self.path, "a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")

    def has(self, key):
        return any(line["key"] == key for line in self.lines)

    def find(self, **wanted):
        """The lines whose keys have these values, in order of measurement."""
        return [
            line
            for line in self.lines
            if all(line["key"].get(name) == value for name, value in wanted.items())
        ]

    def seconds(self, **wanted):
        """Setting → the seconds of its first run; infinite where it failed."""
        found = {}
        for line in self.find(repeat=0, **wanted):
            found[line["key"]["setting"]] = line.get("seconds", math.inf)
        return found

    def medians(self, figure_of, **wanted):
        """Setting → the median of a figure of all its runs."""
        found = {}
        for line in self.find(**wanted):
            if "seconds" in line:
                found.setdefault(line["key"]["setting"], []).append(figure_of(line))
        return {setting: statistics.median(figures) for setting, figures in found.items()}


def seconds_of(line):
    return line["seconds"]


def whole_seconds_of(line):
    return line["seconds"] + line["start_seconds"]


class Group(NamedTuple):
    """All runs of one engine at one task, in the setting that was fastest at first."""

    setting: str
    lines: list

    def median(self, field):
        return statistics.median(field(line) for line in self.lines)

    def seconds(self):
        return self.median(seconds_of)

    def peak_mb(self):
        return max(line["peak_bytes"] for line in self.lines) / 1e6

    def others(self):
        return max(line["others"] for line in self.lines)


def kind(line):
    """What was measured, by any of an engine's settings and in any round."""
    return {name: line["key"][name] for name in line["key"] if name not in ("setting", "repeat")}


def best_group(results, engine, task, neighbour=None):
    """Of what was measured last, if the file holds, say, two scales of a workload."""
    found = results.find(engine=engine, task=task, neighbour=neighbour)
    wanted = kind(found[-1]) if found else {}
    seconds = results.seconds(**wanted) if found else {}
    if min(seconds.values(), default=math.inf) == math.inf:
        return None
    setting = min(seconds, key=seconds.get)
    lines = results.find(setting=setting, **wanted)
    return Group(setting, [line for line in lines if "failure" not in line])


class Report:
    """One table's worth: every engine's best at every task."""

    def __init__(self, results, engines, tasks):
        self.results, self.tasks = results, tasks
        self.groups = {
            (engine, task): group
            for engine in engines
            for task in tasks
            if (group := best_group(results, engine, task))
        }
        measured = {engine for engine, _ in self.groups}
        self.rivals = [name for name in engines if name in measured and name not in (OURS, INT8)]

    def equal_beginnings(self, rival, task):
        """How many texts begin as sheaf's, and of how many."""
        ours, theirs = self.groups.get((OURS, task)), self.groups.get((rival, task))
        if not ours or not theirs:
            return 0, 0
        texts, others = ours.lines[0]["beginnings"], theirs.lines[0]["beginnings"]
        return sum(texts.get(key) == others[key] for key in others), len(others)

    def is_right(self, rival):
        """Whether the rival writes what sheaf writes: only then does its speed count."""
        counts = [self.equal_beginnings(rival, task) for task in self.tasks]
        equal, total = (sum(numbers) for numbers in zip(*counts))
        return equal >= RIGHT_SHARE * total

    def value(self, engine, row, with_start):
        """The figure of a row: the seconds of a task, or of each token after w3's first."""
        group = self.groups.get((engine, row.task))
        if not group:
            return None
        if with_start:  # a slower setting may start faster
            return min(self.results.medians(whole_seconds_of, **kind(group.lines[0])).values())
        return self.seconds_per_token(engine, group) if row.is_per_token else group.seconds()

    def seconds_per_token(self, engine, group):
        """After the first, in the setting that is fastest at that, whatever the first took."""
        first = self.groups.get((engine, FIRST))
        if not first:
            return None
        shorter = self.results.medians(seconds_of, **kind(first.lines[0]))
        longer = self.results.medians(seconds_of, **kind(group.lines[0]))
        new_tokens = group.lines[0]["new_tokens"] - 1
        each = [(longer[name] - shorter[name]) / new_tokens for name in longer if name in shorter]
        return min((value for value in each if value > 0), default=None)

    def best_rival(self, row, with_start):
        """Name and figure of the fastest whose text is right."""
        figures = {
            rival: figure
            for rival in self.rivals
            if self.is_right(rival) and (figure := self.value(rival, row, with_start)) is not None
        }
        return min(figures.items(), key=lambda item: item[1], default=None)

    def ratio(self, row, with_start):
        ours, best = self.value(row.engine, row, with_start), self.best_rival(row, with_start)
        return best[1] / ours if ours and best else None


class Row(NamedTuple):
    task: str
    engine: str = OURS
    is_per_token: bool = False


def rows_of(report):
    rows = []
    for task in report.tasks:
        rows.append(Row(task, is_per_token=task == "w3" and (OURS, FIRST) in report.groups))
        if (INT8, task) in report.groups:
            rows.append(Row(task, INT8))
    return [row for row in rows if (row.engine, row.task) in report.groups]


def print_row(cells):
    print("| " + " | ".join(cells) + " |")


def print_header(cells):
    print_row(cells)
    print_row(["---"] * len(cells))


def row_label(report, row):
    line = report.groups[row.engine, row.task].lines[0]
    tokens = f"{line['prompt_tokens']:,} + {line['new_tokens']:,}"
    name = {FIRST: "W3, first token", "short": "short document"}.get(row.task, row.task.upper())
    if row.is_per_token:
        name += ", each token after it"
    if row.engine != OURS:
        name += f", {row.engine}"
    return f"{name} ({line['key']['requests']}: {tokens})"


def figure(value, row):
    if value is None:
        return "–"
    return f"{1e3 * value:.1f} ms" if row.is_per_token else f"{value:.2f} s"


def print_times(report, title, with_start):
    print(f"\n**{title}**\n")
    print_header(["workload (requests: prompt + new tokens)", OURS, *report.rivals, "ratio"])
    for row in rows_of(report):
        if with_start:
            row = row._replace(is_per_token=False)
        cells = [figure(report.value(row.engine, row, with_start), row)]
        for rival in report.rivals:
            cells.append(figure(report.value(rival, row, with_start), row))
        ratio, best = report.ratio(row, with_start), report.best_rival(row, with_start)
        cells.append(f"**{ratio:.1f}** ({best[0]})" if ratio else "–")
        print_row([row_label(report, row), *cells])


def memory_and_texts(report, engine, row):
    group = report.groups.get((engine, row.task))
    if not group:
        return "–"
    equal, total = report.equal_beginnings(engine, row.task)
    return f"{group.peak_mb():.0f}" + (f"; {equal} of {total}" if engine != OURS else "")


def print_memory_and_texts(report):
    print(f"\n**Peak memory (MB); texts whose first {BEGINNING} characters are sheaf's**\n")
    print_header(["workload", OURS, *report.rivals])
    for row in rows_of(report):
        cells = [memory_and_texts(report, engine, row) for engine in (row.engine, *report.rivals)]
        print_row([row_label(report, row._replace(is_per_token=False)), *cells])
    wrong = [rival for rival in report.rivals if not report.is_right(rival)]
    if wrong:
        print(f"\n**Not counted in the ratios**, as the texts differ: {', '.join(wrong)}")
    if any(group.others() > DISTURBED_SHARE for group in report.groups.values()):
        print("\n**Disturbed**: other programs used the machine; measure again when it is idle.")


def print_settings(report):
    print()
    for (engine, task), group in report.groups.items():
        times = " ".join(f"{line['seconds']:.2f}" for line in group.lines)
        starts = group.median(lambda line: line["start_seconds"])
        tried = report.results.seconds(**kind(group.lines[0]))
        others = [
            f"{name}: " + ("failed" if time == math.inf else f"{time:.1f} s")
            for name, time in tried.items()
            if name != group.setting
        ]
        text = f"- {task.upper()}, {engine}: {group.setting}: {times} s; start {starts:.2f} s"
        computed = group.lines[0]["computed_tokens"]
        text += f"; {computed} prompt tokens computed" if computed is not None else ""
        text += f"; others at most {group.others():.0%} of the machine"
        print(text + (f"; tried {', '.join(others)}" if others else ""))


def print_gaps(results):
    """What failed and was not measured otherwise since."""
    for line in results.lines:
        key = line["key"]
        if "failure" not in line or is_outdated(results, line):
            continue
        where = "left out"
        if "task" in key:
            beside = f" beside a {key['neighbour']} process" if key["neighbour"] else ""
            where = f"{key['task'].upper()}{beside}, {key['setting']}"
        print(f"- **Gap**: {key['engine']}: {where}: {line['failure']}")


def is_outdated(results, line):
    key = line["key"]
    if "task" not in key:  # it could not be installed then
        return bool(results.find(engine=key["engine"])[1:])
    same = {name: key[name] for name in ("engine", "task", "neighbour")}
    return kind(results.find(**same)[-1]) != kind(line)


def verdict(is_met):
    return "met" if is_met else "**missed**"


def print_goals(report):
    has_amx = bench_machine.has_flag("amx_bf16")
    bars = {OURS: RATIOS_WITH_AMX if has_amx else RATIOS}
    bars[INT8] = INT8_RATIOS_WITH_AMX if has_amx else {}
    print("\n")
    print_header(["goal", "measured", ""])
    for row in rows_of(report):
        bar, ratio = bars[row.engine].get(row.task), report.ratio(row, with_start=False)
        label = row_label(report, row)
        if bar and ratio:
            print_row([f"{label}: {bar} × the best rival", f"{ratio:.2f}", verdict(ratio >= bar)])
        whole = row._replace(is_per_token=False)
        ratio = report.ratio(whole, with_start=True)
        if ratio and row.task not in (FIRST, "short") and row.engine == OURS:
            goal = f"{row_label(report, whole)}, start included: {START_INCLUDED_RATIO} ×"
            print_row([goal, f"{ratio:.2f}", verdict(ratio >= START_INCLUDED_RATIO)])
        print_own_goals(report, whole)
    groups = [report.groups[row.engine, row.task] for row in rows_of(report)]
    share = max(line["details"]["input_share"] for group in groups for line in group.lines)
    goal = "reading and tokenizing, on a thread of their own, never the bottleneck"
    print_row([goal, f"at most {share:.2%}", verdict(share < 0.5)])


def print_own_goals(report, row):
    """Those that need no rival."""
    group, name = report.groups[row.engine, row.task], row_label(report, row)
    if row.task == "short":
        first = report.value(row.engine, row, with_start=True)
        goal = f"its row within {FIRST_ROW_SECONDS_MAX} s of the start"
        print_row([f"{name}: {goal}", f"{first:.2f} s", verdict(first <= FIRST_ROW_SECONDS_MAX)])
    limit = (group.lines[0]["details"]["needed_bytes"] + MEMORY_EXTRA_BYTES) / 1e6
    peak = group.peak_mb()
    goal = f"peak memory within weights + KV + {MEMORY_EXTRA_BYTES / 1e6:.0f} MB = {limit:.0f} MB"
    print_row([f"{name}: {goal}", f"{peak:.0f} MB", verdict(peak <= limit)])


def print_linear(results):
    """Wall time a document, from start to exit, and memory as the documents become more."""
    tasks = sorted({line["key"]["task"] for line in results.lines if is_linear(line)})
    if not tasks:
        return
    print("\n**More documents: W1 at once, twice and four times as long, start to exit**\n")
    print_header(["documents", "time", "per document", "against the first", "peak memory (MB)"])
    base = None
    for task in tasks:
        group = best_group(results, OURS, task)
        if not group:
            continue
        count = group.lines[0]["key"]["requests"]
        whole = group.median(whole_seconds_of)
        each = whole / count
        base = base or each
        cells = [f"{whole:.2f} s", f"{each:.3f} s", f"{each / base - 1:+.1%}"]
        print_row([str(count), *cells, f"{group.peak_mb():.0f}"])


def is_linear(line):
    return line["key"].get("task", "").startswith("linear")


def print_busy(results, engines):
    """Throughput beside a spinning process, as a share of the quiet one."""
    if not any(line["key"].get("neighbour") for line in results.lines):
        return
    print("\n**Beside a busy process: throughput as a share of the quiet machine's**\n")
    print_header(["engine", *bench_machine.NEIGHBOURS])
    for engine in engines:
        quiet = best_group(results, engine, "busy")
        if quiet:
            shares = [neighbour_share(results, engine, quiet, k) for k in bench_machine.NEIGHBOURS]
            print_row([f"{engine} ({quiet.setting})", *shares])


def neighbour_share(results, engine, quiet, kind):
    group = best_group(results, engine, "busy", kind)
    if not group:
        return "–"
    before, after = quiet.seconds(), group.seconds()
    return f"{before / after:.0%} ({before:.1f} → {after:.1f} s)"


def print_facts(results):
    """A bench in several sittings has the facts of all of them; the last word counts."""
    facts = {}
    for line in results.lines:
        facts.update(line.get("facts", {}))
    for name, fact in facts.items():
        print(f"- {name}: {fact}")
