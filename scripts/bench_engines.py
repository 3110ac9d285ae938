"""The engines under comparison, each run the way its user would run it: sheaf and llama.cpp.

sheaf is one process over the workload's file; llama.cpp is its server, given all requests at
once as token ids. Every engine (bench_rivals.py has the others) generates a fixed number of
tokens greedily and says what it counted. An engine has a name, a version, a note on how it runs,
settings(task, seconds) to try, which may depend on the seconds of those tried so far, and
runs(setting, tasks), which yields each task with a Run or a Failure.
"""

import concurrent.futures
import contextlib
import http.client
import json
import os
import signal
import socket
import subprocess
import threading
import time
from typing import NamedTuple

import bench_machine
import bench_workloads

SLOT_CHOICES = [4, 16, 32]


class Task(NamedTuple):
    """What every engine is given alike."""

    name: str
    workload: bench_workloads.Workload
    prompts: dict  # request id → token ids
    neighbour: str | None = None

    def asks_questions(self):
        """Many requests share a document."""
        return bench_workloads.SHAPES[self.workload.name].asks_questions

    def prompt_tokens(self):
        return sum(len(ids) for ids in self.prompts.values())

    def context(self):
        """Tokens of the longest request, what is generated included."""
        return max(len(ids) for ids in self.prompts.values()) + self.workload.new_tokens


class Run(NamedTuple):
    seconds: float  # from the first request to the last answer, start-up left out
    start_seconds: float
    prompt_tokens: int
    computed_tokens: int | None
    new_tokens: int
    peak_bytes: int
    others: float  # share of the machine used by other programs meanwhile
    texts: dict  # request id → generated text
    details: dict  # sheaf's own


class Failure(NamedTuple):
    reason: str


class Broken(Exception):
    """An engine ended, answered nonsense or took too long."""


class Limits(NamedTuple):
    run_seconds: float
    start_seconds: float
    idle_seconds: float  # to wait for an idle machine


class Deadline:
    """Kills a process and its group when its time is up."""

    def __init__(self, process, seconds):
        self.process, self.seconds, self.is_over = process, seconds, False
        self.timer = threading.Timer(seconds, self._end)

    def _end(self):
        self.is_over = True
        kill(self.process)

    def __enter__(self):
        self.timer.start()
        return self

    def __exit__(self, kind, error, trace):
        self.timer.cancel()
        if self.is_over:
            raise Broken(f"over {self.seconds:.0f} s") from error


def start(command, **options):
    """A process in a group of its own, so that what it starts can be ended with it."""
    return subprocess.Popen([str(part) for part in command], start_new_session=True, **options)


def kill(process):
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def wait_for_end(process):
    """Waits like Popen.wait and gives the most memory the process ever had."""
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return usage.ru_maxrss * 1024


class Timing:
    """On an idle machine, beside the task's neighbour: the seconds and the others' share."""

    def __init__(self, task, limits, pid=None):
        self.task, self.limits, self.pid = task, limits, pid

    def __enter__(self):
        bench_machine.wait_for_idle(self.limits.idle_seconds)
        self.neighbour = bench_machine.neighbour(self.task.neighbour)
        self.neighbour.__enter__()
        self.meter, self.started = bench_machine.Meter(self.pid), time.monotonic()
        return self

    def __exit__(self, *error):
        self.seconds = time.monotonic() - self.started
        self.others = self.meter.others()
        self.neighbour.__exit__(*error)


class Sheaf:
    note = ""

    def __init__(self, program, model, threads, limits, scratch):
        self.program, self.model, self.threads = program, model, threads
        self.limits, self.scratch = limits, scratch
        self.name, self.options, self.template_options = "sheaf", [], []

    def with_options(self, name, *options):
        """The same program with more options of `run` and `plan`, as an engine of its own."""
        other = Sheaf(self.program, self.model, self.threads, self.limits, self.scratch)
        other.name, other.options = name, list(options)
        other.template_options = self.template_options
        return other

    def _command(self, name, workload, *options):
        common = ["-q", "-m", self.model, "-n", str(workload.new_tokens), *self.template_options]
        common += self.options + workload.prompt_options
        return [str(part) for part in [self.program, name, *common, *options]]

    def version(self):
        command = [self.program, "--version"]
        return subprocess.run(
            command, check=True, capture_output=True, text=True
        ).stdout.split("\n")[0]

    def settings(self, _task, _seconds):
        return [" ".join(self.options) or "defaults"]

    def _plan(self, workload, *options):
        command = self._command("plan", workload, "--json", *options)
        return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)

    def prompt_ids(self, workload):
        """Request id → token ids, as sheaf renders them; one document at a time is planned."""
        lines = workload.documents.read_text(encoding="utf-8").splitlines()
        document_of = {json.loads(line)["id"]: line for line in lines}
        one = self.scratch / "one.jsonl"
        prompts = {}
        for request in workload.request_ids:
            one.write_text(document_of[request.split("#")[0]] + "\n", encoding="utf-8")
            prompts[request] = self._plan(workload, "--show-prompt", request, one)["ids"]
        return prompts

    def runs(self, _setting, tasks):
        for task in tasks:
            try:
                yield task, self._run(task)
            except Broken as error:
                yield task, Failure(str(error))

    def _run(self, task):
        output, summary = self.scratch / "rows.jsonl", self.scratch / "summary.json"
        options = ["-t", self.threads, "--ignore-eos", "-o", output, "--force"]
        options += ["--summary", summary, task.workload.documents]
        command = self._command("run", task.workload, *options)
        with Timing(task, self.limits) as timing:
            process = start(command)
            with Deadline(process, self.limits.run_seconds):
                peak = wait_for_end(process)
        if process.returncode != 0:
            raise Broken(f"ended with {process.returncode}")
        summary = json.loads(summary.read_text(encoding="utf-8"))
        rows = [json.loads(line) for line in output.read_text(encoding="utf-8").splitlines()]
        load = summary["time"]["load_ms"] / 1e3
        return Run(
            seconds=timing.seconds - load,
            start_seconds=load,
            prompt_tokens=sum(row["tokens"]["prompt"] for row in rows),
            computed_tokens=sum(row["work"]["computed"] for row in rows),
            new_tokens=sum(row["tokens"]["completion"] for row in rows),
            peak_bytes=peak,
            others=timing.others,
            texts={row["id"]: row["text"] for row in rows},
            details=self._details(task.workload, summary),
        )

    def _details(self, workload, summary):
        time_used = summary["time"]
        return {
            "needed_bytes": summary["memory"]["weights_bytes"]
            + self._plan(workload, workload.documents)["kv_bytes"],
            "input_share": time_used["reading_share"] + time_used["tokenizing_share"],
            "numerics": summary["machine"]["numerics"],
            "model_sha256": summary["model"]["sha256"],
        }


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def slots_to_try(request_count, has_shared_documents):
    """Slot counts worth trying, the largest first; one slot computes a shared document once."""
    choices = SLOT_CHOICES + ([1] if has_shared_documents else [])
    return sorted({min(slots, request_count) for slots in choices}, reverse=True)


class LlamaCpp:
    """llama-server: each slot has its own KV, as long as the longest request."""

    name, note = "llama.cpp", "; f16 KV, -b 2048 -ub 512"

    def __init__(self, folder, model, threads, limits, scratch):
        self.server, self.model, self.threads = folder / "llama-server", model, threads
        self.limits, self.log = limits, scratch / "llama-server.log"

    def version(self):
        command = [self.server, "--version"]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return " ".join((done.stdout + done.stderr).split())

    def settings(self, task, seconds):
        """Flash attention is settled at the most slots, then the slots."""
        slots = slots_to_try(len(task.prompts), task.asks_questions())
        first = [f"-np {slots[0]} -fa {choice}" for choice in ("on", "off")]
        if not all(setting in seconds for setting in first):
            return first
        choice = min(first, key=seconds.get).split()[-1]
        return first + [f"-np {count} -fa {choice}" for count in slots[1:]]

    def runs(self, setting, tasks):
        for task in tasks:
            try:
                yield task, self._run(setting, task)
            except (Broken, OSError, http.client.HTTPException, ValueError) as error:
                yield task, Failure(str(error) or type(error).__name__)

    def _start(self, setting, task):
        self.port = free_port()
        options = setting.split()
        slots = int(options[1])
        command = [self.server, "-m", self.model, "-t", self.threads, "-tb", self.threads]
        command += [*options, "-c", slots * (task.context() + 8), "-no-kvu"]
        command += ["-b", 2048, "-ub", 512, "--host", "127.0.0.1", "--port", self.port]
        with open(self.log, "wb") as log:
            return start(command, stdout=log, stderr=log)

    def _ask(self, method, path, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port)
        try:
            connection.request(method, path, body, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def _wait_until_ready(self, process):
        while process.poll() is None:
            with contextlib.suppress(OSError):
                if self._ask("GET", "/health")[0] == 200:
                    return
            time.sleep(0.02)
        raise Broken(f"did not start: see {self.log}")

    def _complete(self, ids, new_tokens):
        request = {
            "prompt": ids,
            "n_predict": new_tokens,
            "temperature": 0,
            "ignore_eos": True,
            "cache_prompt": True,
        }
        status, body = self._ask("POST", "/completion", json.dumps(request))
        if status != 200:
            raise Broken(f"answered {status}: {body[:300]!r}")
        return json.loads(body)

    def _run(self, setting, task):
        bench_machine.wait_for_idle(self.limits.idle_seconds)
        started = time.monotonic()
        process = self._start(setting, task)
        try:
            with Deadline(process, self.limits.start_seconds):
                self._wait_until_ready(process)
            start_seconds = time.monotonic() - started
            with Timing(task, self.limits, process.pid) as timing:
                with Deadline(process, self.limits.run_seconds):
                    answers = self._complete_all(task)
        except BaseException:
            kill(process)
            process.wait()
            raise
        process.send_signal(signal.SIGINT)
        return Run(
            seconds=timing.seconds,
            start_seconds=start_seconds,
            prompt_tokens=sum(answer["tokens_evaluated"] for answer in answers),
            computed_tokens=sum(answer["timings"]["prompt_n"] for answer in answers),
            new_tokens=sum(answer["tokens_predicted"] for answer in answers),
            peak_bytes=wait_for_end(process),
            others=timing.others,
            texts={key: answer["content"] for key, answer in zip(task.prompts, answers)},
            details={},
        )

    def _complete_all(self, task):
        new_tokens, prompts = task.workload.new_tokens, task.prompts.values()
        with concurrent.futures.ThreadPoolExecutor(len(prompts)) as clients:
            return list(clients.map(lambda ids: self._complete(ids, new_tokens), prompts))
