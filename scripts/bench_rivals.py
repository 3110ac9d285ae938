"""The rivals that are Python libraries: vLLM, OpenVINO GenAI and transformers.

Each lives in an environment of its own, where bench_run_NAME.py answers in JSON lines (see
bench_runner.py). They get the same weights dequantised from the GGUF, and the same token ids;
the ids they generate become text through the GGUF's own vocabulary.
"""

import json
import os
import subprocess
import time
from pathlib import Path

import bench_engines
import bench_install
import bench_machine
from bench_engines import Broken, Failure, Run

BATCH_TOKENS = 2048
SEQUENCES = 64
KV_GIB = 4
BATCHING = f"chunks of {BATCH_TOKENS}, {SEQUENCES} sequences, {KV_GIB} GiB of KV, prefix caching on"


class Runner:
    """A running bench_run_NAME.py."""

    def __init__(self, python, script, configuration, environment, log):
        path = Path(__file__).with_name(script)
        self.log_path, self.log = log, open(log, "wb")
        variables = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", **environment}
        self.process = bench_engines.start(
            [python, path],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log,
            env=variables,
        )
        self.configuration = configuration

    def __enter__(self):
        return self

    def __exit__(self, *error):
        bench_engines.kill(self.process)
        self.process.wait()
        for file in (self.process.stdin, self.process.stdout, self.log):
            file.close()

    def ask(self, message, limit_seconds):
        with bench_engines.Deadline(self.process, limit_seconds):
            try:
                self.process.stdin.write(json.dumps(message).encode() + b"\n")
                self.process.stdin.flush()
            except BrokenPipeError:
                pass  # it has ended: the empty answer says so
            answer = self.process.stdout.readline()
        if not answer:
            raise Broken(f"ended: {self.last_words()} (see {self.log_path})")
        return json.loads(answer)

    def start(self, limit_seconds):
        """Seconds until it is ready."""
        started = time.monotonic()
        self.ask(self.configuration, limit_seconds)
        return time.monotonic() - started

    def last_words(self):
        lines = self.log_path.read_text(encoding="utf-8", errors="replace").split("\n")
        return next((line.strip() for line in reversed(lines) if line.strip()), "no word")[:200]


class PythonRival:
    """What the three have in common; a subclass prepares, configures and lists settings."""

    name = script = package = note = ""
    is_shared = False  # one runner serves all tasks, as starting takes long

    def __init__(self, environment, model, threads, limits, folder):
        self.environment, self.model, self.threads = environment, model, threads
        self.limits, self.folder = limits, folder
        self.vocabulary = []

    def prepare(self, form):
        converted = bench_install.convert(self.environment, self.model, form, self.folder)
        text = (converted / "vocabulary.json").read_text(encoding="utf-8")
        self.vocabulary = [bytes.fromhex(token) for token in json.loads(text)]
        return converted

    def variables(self, _setting):
        return {}

    def version(self):
        command = [self.environment.python(), "-m", "pip", "show", self.package]
        shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        return next(line for line in shown.split("\n") if line.startswith("Version: "))[9:]

    def text(self, ids):
        return b"".join(self.vocabulary[token] for token in ids).decode(errors="replace")

    def runs(self, setting, tasks):
        groups = [tasks] if self.is_shared else [[task] for task in tasks]
        for group in groups:
            yield from self._runner_runs(setting, group)

    def _runner_runs(self, setting, tasks):
        """After a failure the rest of the tasks get a new runner."""
        waiting = list(tasks)
        while waiting:
            bench_machine.wait_for_idle(self.limits.idle_seconds)
            try:
                with self._runner(setting, waiting) as runner:
                    start_seconds = runner.start(self.limits.start_seconds)
                    while waiting:
                        run = self._run(runner, start_seconds, waiting[0])
                        yield waiting.pop(0), run
            except Broken as error:
                yield waiting.pop(0), Failure(str(error))

    def _runner(self, setting, tasks):
        log = self.folder / f"{self.name}.log"
        configuration = self.configuration(setting, tasks)
        python, variables = self.environment.python(), self.variables(setting)
        return Runner(python, self.script, configuration, variables, log)

    def _run(self, runner, start_seconds, task):
        request = {
            "prompts": list(task.prompts.values()),
            "new_tokens": task.workload.new_tokens,
        }
        with bench_engines.Timing(task, self.limits, runner.process.pid) as timing:
            answer = runner.ask(request, self.limits.run_seconds)
        return Run(
            seconds=answer["seconds"],
            start_seconds=start_seconds,
            prompt_tokens=task.prompt_tokens(),
            computed_tokens=answer["computed"],
            new_tokens=sum(len(ids) for ids in answer["ids"]),
            peak_bytes=bench_machine.tree_peak_bytes(runner.process.pid),
            others=timing.others,
            texts=dict(zip(task.prompts, map(self.text, answer["ids"]))),
            details={},
        )


class Vllm(PythonRival):
    name, script, package = "vLLM", "bench_run_vllm.py", bench_install.VLLM_PACKAGE
    note = f"; weights dequantised to bf16, bf16 KV, tcmalloc and libiomp5 preloaded, {BATCHING}"
    is_shared = True

    def prepare(self):
        self.path = super().prepare("huggingface")
        allocator = bench_install.unpack_debian("tcmalloc", [bench_install.ALLOCATOR_PACKAGE])
        self.preloaded = [next(allocator.rglob("libtcmalloc_minimal.so.?"))]
        self.preloaded.append(self.environment.folder / "lib/libiomp5.so")

    def settings(self, _task, _seconds):
        return ["graph mode", "eager mode"]

    def configuration(self, setting, tasks):
        return {
            "model": str(self.path),
            "context": max(task.context() for task in tasks) + 8,
            "sequences": SEQUENCES,
            "batch_tokens": BATCH_TOKENS,
            "is_eager": setting == "eager mode",
        }

    def variables(self, _setting):
        processors = sorted(os.sched_getaffinity(0))[: self.threads]
        cuda = self.environment.folder.glob("lib/python3*/site-packages/nvidia/*/lib")
        return {
            "VLLM_CPU_KVCACHE_SPACE": str(KV_GIB),
            "VLLM_CPU_OMP_THREADS_BIND": ",".join(map(str, processors)),
            "VLLM_NO_USAGE_STATS": "1",
            "HF_HUB_OFFLINE": "1",
            "LD_LIBRARY_PATH": ":".join(map(str, cuda)),  # its torch was built with CUDA
            "LD_PRELOAD": ":".join(map(str, self.preloaded)),
        }


class OpenVino(PythonRival):
    name, script, package = "OpenVINO", "bench_run_openvino.py", bench_install.OPENVINO_PACKAGE
    note = f"; IR from F16 weights, {BATCHING}; of questions on one document the first goes ahead"

    def prepare(self):
        source = super().prepare("f16")
        self.path = source / "ir"
        if not (self.path / "done").exists():
            self.path.mkdir(exist_ok=True)
            script = Path(__file__).with_name("bench_make_ir.py")
            command = [self.environment.python(), script, source / "model.gguf", self.path]
            bench_install.call(command, source / "log")
            (self.path / "done").touch()

    def settings(self, _task, _seconds):
        return ["bf16, KV bf16", "bf16, KV u8"]

    def configuration(self, setting, tasks):
        return {
            "model": str(self.path),
            "sequences": SEQUENCES,
            "batch_tokens": BATCH_TOKENS,
            "kv_gib": KV_GIB,
            "kv": setting.split()[-1],
            "precision": "bf16",
            "threads": self.threads,
            "is_staggered": tasks[0].asks_questions(),
        }


class Transformers(PythonRival):
    name, script = "transformers", "bench_run_transformers.py"
    package = bench_install.TRANSFORMERS_PACKAGE
    note = "; weights dequantised to bf16, generate() with padding, no prefix shared"

    def prepare(self):
        self.path = super().prepare("huggingface")

    def settings(self, task, _seconds):
        sizes = [1, 4] if task.context() > 4000 else [8, 32]
        sizes = {min(size, len(task.prompts)) for size in sizes}
        return [f"bf16, batches of {size}" for size in sorted(sizes)]

    def configuration(self, setting, _tasks):
        return {
            "model": str(self.path),
            "threads": self.threads,
            "batch_size": int(setting.split()[-1]),
        }

    def variables(self, _setting):
        return {"HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": str(self.threads)}
