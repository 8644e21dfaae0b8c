"""What this machine is, and the tools on it.

Needs the standard library; torch and transformers are asked for their versions where they are installed. Must not know
what is measured.
"""

import contextlib
import fcntl
import hashlib
import importlib.metadata
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

REPO = Path(__file__).resolve().parent.parent
# Trees of the same sources give the same bytes, whatever was committed since: rows and builds go by a digest of amkc.
GO_BUILD = ("go", "build", "-trimpath", "-buildvcs=false")
# What `amkc targets` calls the GPUs that were measured, by their name in the driver. Another product of the same name
# has other sizes: an H100 PCIe is not an h100.
TARGETS = {"NVIDIA H100 80GB HBM3": "h100", "NVIDIA H200": "h200"}
NO_GPU = "none found"


class Missing(Exception):
    """A tool that is not here; the text says what would supply it."""


class InUse(Exception):
    """Another invocation, or another user, has what this one needs."""


class Tools:
    """The executables that are run: amkc, bench/device and bench/dequantised from a directory, nvcc and
    compute-sanitizer from where CUDA is."""

    def __init__(self, directory=None, work="build/results"):
        self.directory = Path(directory).resolve() if directory else Path(work).resolve() / "tools"
        if not directory:
            build_tools(self.directory)
        self.amkc, self.device = self.directory / "amkc", self.directory / "device"
        self.dequantised = self.directory / "dequantised"
        for path in (self.amkc, self.device, self.dequantised):
            if not os.access(path, os.X_OK):
                raise Missing(f"{path} is not there; on a machine with Go, make results-tools puts it into "
                              "dist/results")
        self.nvcc = find_cuda("nvcc")
        self.sanitizer = find_cuda("compute-sanitizer")

    def need(self, name):
        """nvcc or compute-sanitizer, which may be missing."""
        path = {"nvcc": self.nvcc, "compute-sanitizer": self.sanitizer}[name]
        if not path:
            raise Missing(f"there is no {name} here")
        return path


def build_tools(directory):
    """Builds what --tools would bring along."""
    if not shutil.which("go"):
        raise Missing("there is no Go here to build amkc with; make results-tools on a machine with Go, and then "
                      "--tools dist/results here")
    directory.mkdir(parents=True, exist_ok=True)
    built = subprocess.run([*GO_BUILD, "-o", str(directory) + os.sep, "./cmd/amkc", "./bench/device",
                            "./bench/dequantised"], cwd=REPO, env=os.environ | {"CGO_ENABLED": "0"})
    if built.returncode != 0:
        raise Missing("go cannot build amkc and the tools of bench; what it said is above")


def find_cuda(name):
    """A tool of the CUDA toolkit: on PATH, in CUDA_HOME, in /usr/local/cuda, or in the repository's .cuda; None if
    nowhere."""
    places = [Path(os.environ["CUDA_HOME"])] if os.environ.get("CUDA_HOME") else []
    places += [Path("/usr/local/cuda"), REPO / ".cuda" / "nvidia" / "cu13"]
    for path in [shutil.which(name)] + [p / "bin" / name for p in places]:
        if path and os.access(path, os.X_OK):
            return str(path)
    return None


def tool_environment(tools):
    """The environment of child processes: nvcc on PATH, so that amkc uses the one that is reported."""
    env = dict(os.environ)
    if tools.nvcc:
        env["PATH"] = os.path.dirname(tools.nvcc) + os.pathsep + env.get("PATH", "")
    return env


def output(*args):
    """What a command prints, or nothing where it cannot run."""
    try:
        done = subprocess.run(args, capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout if done.returncode == 0 else ""


def gpu_facts(text):
    """GPU and driver from the CSV that nvidia-smi prints for the query below; the first line is the GPU that is
    used."""
    line = next((l for l in text.splitlines() if l.strip()), "")
    fields = [f.strip() for f in line.split(",")]
    if len(fields) < 3:
        return {"gpu": NO_GPU}
    return {"gpu": fields[0], "driver": fields[1], "GPU memory": fields[2]}


def gpu_query():
    """What nvidia-smi says of the GPU that is used: the first of CUDA_VISIBLE_DEVICES, and without that the first."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible == "":
        return ""  # which hides all of them
    only = ["-i", visible.split(",")[0].strip()] if visible else []
    return output("nvidia-smi", *only, "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader")


def number_as_listed():
    """Has CUDA number GPUs as nvidia-smi does, here and in child processes; else the fastest one is its first."""
    os.environ["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"


def need_gpu(environment):
    """Refuses a machine whose rows would say nothing."""
    if environment["gpu"] == NO_GPU:
        hidden = os.environ.get("CUDA_VISIBLE_DEVICES")
        raise Missing("no GPU was found: nvidia-smi is not there, or fails" +
                      (f", or has no GPU {hidden!r}, which CUDA_VISIBLE_DEVICES names" if hidden is not None else "") +
                      "; want a machine with an NVIDIA GPU and its driver")


def need_numpy():
    """Ends a script that is about to import numpy where there is none."""
    if not importlib.util.find_spec("numpy"):
        print(f"{Path(sys.argv[0]).name}: error: numpy is needed: python3 -m pip install numpy", file=sys.stderr)
        sys.exit(2)


def package(name):
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "absent"


def environment(tools):
    """What a row depends on besides its command. No times and no names of machines: equal ones are one environment."""
    release = re.search(r"release ([\d.]+), V([\d.]+)", output(tools.nvcc, "--version") if tools.nvcc else "")
    facts = gpu_facts(gpu_query())
    try:
        version = json.loads(output(str(tools.amkc), "version", "--json") or "{}")
    except json.JSONDecodeError:
        version = {}
    described = " ".join(filter(None, (version.get("version"), version.get("commit", "")[:12])))
    return facts | {
        "nvcc": release.group(2) if release else "absent",
        "torch": package("torch"), "transformers": package("transformers"), "numpy": package("numpy"),
        "amkc": f"{described} (SHA-256 {digest(tools.amkc)})".strip(),
    }


def digest(path):
    """The first digits of a file's SHA-256."""
    with open(path, "rb") as f:
        return hashlib.file_digest(f, "sha256").hexdigest()[:12]


def file_name(gpu):
    """A name for the files of a GPU: NVIDIA H200 -> h200, its target, and of one that has none NVIDIA L4 ->
    nvidia-l4."""
    return TARGETS.get(gpu) or re.sub(r"[^a-z0-9]+", "-", gpu.lower()).strip("-") or "gpu"


@contextlib.contextmanager
def sole_use(work):
    """Keeps other invocations out of a directory: they would replace what this one runs."""
    work = Path(work)
    work.mkdir(parents=True, exist_ok=True)
    with open(work / ".lock", "w", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise InUse(f"{work} is in use by another invocation; wait for it, or give another "
                        "directory with --work") from None
        yield
