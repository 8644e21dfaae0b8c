"""Builds, and what is run on them: amkc, nvcc and the tools of bench/device, each a child process with a time limit.

Needs numpy beside the standard library, and must not know what a result has to be.
"""

import concurrent.futures
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Callable

import numpy as np

import blocks
import machine

BUILD_SECONDS = 1800  # packing random weights of 8 billion parameters included
RUN_SECONDS = 300  # nothing that is decoded here takes as long, unless it hangs
# The plain ones too: the layout of the cache depends on definitions.
KERNELS = ("megakernel", "measure", "reference", "prompt")
WEIGHTS = "weights.safetensors"
NVCC_FLAGS = ("-O3", "-std=c++17", "-fmad=false")
DEVICE_VERBS = ("soak", "passes", "drafts", "sequences", "serving", "load", "clients")  # that launchers do not have
LONG = 32768  # positions from which on a build says in its key how many it has
FEATURES = ("AMK_BULK_COPY=0", "AMK_ASYNC_COPY=0", "AMK_TENSOR_CORES=0")
PROMPTS_NEED = FEATURES[1:]  # a build without one of these has no kernel for prompts


class StepFailed(Exception):
    """A command that did not do what it should; the text is its first complaint."""


class OutOfTime(Exception):
    """The budget of this invocation is used up."""


class NotRun(Exception):
    """Something that this machine does not let one find out; the text says why. Unlike a failure it says nothing of the
    build."""


class Budget:
    def __init__(self, seconds=None):
        self.seconds = float("inf") if seconds is None else seconds
        self.end = time.monotonic() + self.seconds

    def remaining(self):
        return self.end - time.monotonic()


@dataclass(frozen=True)
class Case:
    """A model in a dtype: what is compiled."""

    model: str  # path of its directory
    dtype: str  # fp32, fp16 or bf16
    seed: int | None = None  # weights are random
    max_seq: int | None = None  # None: what the model was made for
    # Knobs of the schedule, (group, name, value) each, that are not as amkc has them. No group: not of the tiling.
    knobs: tuple = ()
    weights: str = ""  # how matrices are stored, as --weights takes it, or a kind of bench/blocks.py
    cache: str = ""  # how keys and values are, as --cache takes it
    rows: int = 1  # of passes that it is compiled for besides
    sequences: int = 1  # likewise
    sequence_rows: int = 1  # of each of these in a pass, likewise
    left_out: bool = False  # random matrices are in no file: whatever loads the build makes other ones
    spoken: bool = False  # with the tokenizer and the chat template of spoken.py, where the model has none

    @property
    def name(self):
        return Path(self.model).name

    @property
    def key(self):
        return (f"{self.name}-{self.dtype}" + (f"-seed{self.seed}" if self.seed is not None else "") +
                (f"-max{self.max_seq}" if self.max_seq and self.max_seq >= LONG else "") +
                "".join(f"-{item.replace(':', '-').replace('*', '')}" for item in self.weights.split(",") if item) +
                (f"-cache-{self.cache}" if self.cache else "") + (f"-rows{self.rows}" if self.rows > 1 else "") +
                (f"-sequences{self.sequences}" if self.sequences > 1 else "") +
                (f"x{self.sequence_rows}" if self.sequence_rows > 1 else "") +
                ("-left-out" if self.left_out else "") + ("-spoken" if self.spoken else "") +
                "".join(f"-{group + '.' if group else ''}{name}={value}" for group, name, value in self.knobs))

    def config(self):
        """The ScheduleConfig that turns the knobs, as amkc reads it."""
        config = {"tiling": {}}
        for group, name, value in self.knobs:
            (config["tiling"].setdefault(group, {}) if group else config)[name] = value
        return json.dumps(config)

    def flags(self):
        flags = ["--dtype", self.dtype]
        if self.max_seq:
            flags += ["--max-seq", str(self.max_seq)]
        if self.seed is not None:
            flags += ["--random-weights", str(self.seed)] + ["--leave-out"] * self.left_out
        if self.cache:
            flags += ["--cache", self.cache]
        if self.rows > 1:
            flags += ["--rows", str(self.rows)]
        if self.sequences > 1:
            flags += ["--sequences", str(self.sequences)]
        if self.sequence_rows > 1:
            flags += ["--sequence-rows", str(self.sequence_rows)]
        return flags + self.storage()

    def storage(self):
        return ["--weights", self.weights] if self.weights and self.weights not in blocks.KINDS else []


@dataclass(frozen=True)
class Task:
    """One row: the build that it needs, and a function of the workshop that returns what goes into the row, with
    `passed` and `findings` among it."""

    section: str
    name: str
    case: Case
    run: Callable
    defines: tuple = ()
    also: tuple = ()  # builds that it needs besides: (case, defines) each
    builds: bool = True  # False: the row makes a build of its own, which is a part of what it shows
    seconds: int = 0  # that it takes at least, with its build made; 0: not so long that it matters

    @property
    def id(self):
        return f"{self.section}/{self.name}"


class Workshop:
    """Makes builds in the background, several at a time, and runs them one at a time."""

    def __init__(self, tools, work, target, jobs, budget):
        self.tools, self.work, self.target, self.budget = tools, Path(work), target, budget
        self.env = machine.tool_environment(tools)
        self.pool = concurrent.futures.ThreadPoolExecutor(max_workers=jobs)
        self.builds = {}
        self.log = []  # commands of the current row
        self.planned = set()  # ids of the rows that this invocation makes, for those that share a measurement
        self.speaking = threading.Lock()
        self.weights = {}  # the first file with weights of a digest
        self.work.mkdir(parents=True, exist_ok=True)

    def close(self):
        self.pool.shutdown(wait=True, cancel_futures=True)

    # ---- builds ------------------------------------------------------------------------------------------------------

    def start(self, case, defines=()):
        """Starts a build unless it was, and returns its future: the directory and the commands. Those with defines
        ("AMK_X=0") are copies of the build without, whose kernel is compiled again; the future of that build has been
        started before, so that no worker waits for one that has no worker."""
        key = case.key + "".join("-" + d.removeprefix("AMK_").lower().replace("_", "-").replace("=", "-")
                                 for d in defines)
        if key not in self.builds:
            directory = self.work / key
            if defines:
                base = self.start(case)
                self.builds[key] = self.pool.submit(lambda: self.recompile(base.result(), directory, defines))
            else:
                self.builds[key] = self.pool.submit(self.compile, case, directory)
        return self.builds[key]

    def finish(self, case, defines=()):
        """Waits for a build and returns its directory. The commands that made it go into the log of the row."""
        left = self.budget.remaining()
        try:
            directory, commands = self.start(case, defines).result(None if left == float("inf") else max(0, left))
        except concurrent.futures.TimeoutError:
            raise OutOfTime from None
        self.log += commands
        return directory

    def settle(self):
        """Waits until nothing is being built, so that what is measured next has the machine to itself."""
        left = self.budget.remaining()
        _, busy = concurrent.futures.wait(self.builds.values(), None if left == float("inf") else max(0, left))
        if busy:
            raise OutOfTime

    def outcomes(self):
        """How every build ended, by its name: None if it was made, else what went wrong."""
        ended = {key: OutOfTime("not made") if f.cancelled() or not f.done() else f.exception()
                 for key, f in self.builds.items()}
        return {key: e and (str(e) or "not made") for key, e in ended.items()}

    def spoken(self, args):
        """Makes a model that can be talked to, by spoken.py, and returns the command."""
        command = [sys.executable, str(machine.REPO / "bench/spoken.py"), *args]
        with self.speaking:  # several builds may want the same
            self.execute(command, BUILD_SECONDS)
        return ["python3", *command[1:]]

    def dequantised(self, case):
        """A checkpoint whose tensors have the values that the build of a case computes with."""
        directory = self.work / (case.key + "-values")
        self.execute([str(self.tools.dequantised), case.model, str(directory), "--dtype", case.dtype] + case.storage(),
                     BUILD_SECONDS)
        return str(directory)

    def compile(self, case, directory):
        model, commands = case.model, []
        if case.spoken:
            model = str(self.work / f"{case.name}-spoken")
            commands = [spell(self.spoken([case.model, model]))]
        if case.weights in blocks.KINDS:
            model = str(self.work / f"{case.name}-{case.weights}")
            blocks.write(case.model, model, case.weights)
            commands = [spell(["python3", "bench/blocks.py", case.model, model, case.weights])]
        args = [str(self.tools.amkc), model, "-o", str(directory), "--target", self.target] + case.flags()
        if case.knobs:
            config = directory.with_name(directory.name + ".config.json")
            config.write_text(case.config() + "\n", encoding="utf-8")
            args += ["--config", str(config)]
            commands += [f"echo {shlex.quote(case.config())} > {spell([str(config)])}"]
        stamp = directory.with_name(directory.name + ".stamp")
        made_by = json.dumps([machine.digest(self.tools.amkc), args, self.tools.nvcc])
        kept = stamp.exists() and stamp.read_text() == made_by and (directory / "megakernel.fatbin").exists()
        if not kept:
            self.begin_with_weights(case, directory)
            self.execute(args, BUILD_SECONDS)
            if not (directory / "megakernel.fatbin").exists():
                self.tools.need("nvcc")
                raise StepFailed("amkc left no megakernel.fatbin")
            stamp.write_text(made_by)
        self.share_weights(directory)
        return directory, commands + [spell(args)]

    def begin_with_weights(self, case, directory):
        """Gives a build that is to have other knobs than one that is there the weights of that, which amkc then keeps:
        knobs do not change how weights are packed."""
        plain = self.work / replace(case, knobs=()).key
        if case.knobs and plain.with_name(plain.name + ".stamp").exists() and not directory.exists():
            shutil.copytree(plain, directory, copy_function=lambda source, to: (
                os.link if Path(source).name == WEIGHTS else shutil.copy2)(source, to))

    def share_weights(self, directory):
        """Makes builds that have the same weights share the file: knobs do not change how weights are packed."""
        manifest = json.loads((directory / "amkc.manifest.json").read_text(encoding="utf-8"))
        own, digest = directory / WEIGHTS, manifest["weights"]["sha256"]
        first = self.weights.setdefault(digest, own)
        if first != own:
            linked = own.with_name(own.name + ".linked")
            linked.unlink(missing_ok=True)
            os.link(first, linked)
            os.replace(linked, own)

    def recompile(self, base, directory, defines):
        """A copy of a build whose kernels are compiled with other definitions. What is the same is linked."""
        source, commands = base
        prompts = not set(defines) & set(PROMPTS_NEED)
        kernels = [k for k in KERNELS if (source / f"{k}.fatbin").exists() and (prompts or k != "prompt")]
        kernels += sorted(f"{f.parent.name}/{f.stem}" for f in source.glob("*/*.fatbin"))  # of passes
        manifest = json.loads((source / "amkc.manifest.json").read_text(encoding="utf-8"))
        compilations = [[self.tools.need("nvcc"), *NVCC_FLAGS, *("-D" + d for d in defines), "-gencode",
                         gencode(manifest["facts"]["target"]["arch"]),
                         "-fatbin", "-o", f"{k}.fatbin", f"{k}.cu"] for k in kernels]
        stamp = directory.with_name(directory.name + ".stamp")
        made_by = json.dumps([source.with_name(source.name + ".stamp").read_text(), compilations])
        if not (stamp.exists() and stamp.read_text() == made_by
                and all((directory / f"{k}.fatbin").exists() for k in kernels)):
            stamp.unlink(missing_ok=True)
            if directory.exists():
                shutil.rmtree(directory)
            shutil.copytree(source, directory, copy_function=os.link,
                            ignore=shutil.ignore_patterns(*(f"{Path(k).name}.fatbin" for k in kernels)))
            for args in compilations:
                self.execute(args, BUILD_SECONDS, cwd=directory)
            if not prompts:
                own = directory / "amkc.manifest.json"
                own.unlink()  # the link
                facts = {k: v for k, v in manifest["facts"].items() if k != "prompt"}
                own.write_text(json.dumps(manifest | {"facts": facts}), encoding="utf-8")
            stamp.write_text(made_by)
        return directory, commands + [f"cp -r {source} {directory}"] + [f"cd {directory} && "
                                                                        f"{spell(['nvcc', *args[1:]])}"
                                                                        for args in compilations]

    # ---- running -----------------------------------------------------------------------------------------------------

    def logits(self, directory, ids, where):
        """The logits of a build after each id, [positions, vocab], mapped from a file. where says in words what the ids
        are."""
        out = self.work / "logits.npy"
        args = [str(self.tools.amkc), "logits", str(directory), "--device", "cuda", "-o", str(out), "--ids"]
        self.log.append(spell(args) + f" ...  # {len(ids)} ids: {where}")
        self.execute(args + [joined(ids)], RUN_SECONDS)
        return np.load(out, mmap_mode="r")

    def complete(self, directory, prompt, n):
        """The n ids that a build decodes greedily after a prompt."""
        args = [str(self.tools.amkc), "run", str(directory), "--device", "cuda", "--ids", joined(prompt),
                "--max-tokens", str(n), "--ignore-eos", "--json"]
        self.log.append(spell(args))
        return self.answer(args, RUN_SECONDS)["ids"]

    def on_device(self, directory, verb, *flags, under=(), seconds=RUN_SECONDS, accept=(0,)):
        """Runs a verb of bench/device, or of the build's own launcher where there is one, perhaps under another
        tool."""
        launcher = Path(directory) / launcher_name(directory)
        own = verb not in DEVICE_VERBS and os.access(launcher, os.X_OK)
        args = [*under] + ([str(launcher)] if own else [str(self.tools.device), str(directory)]) + [verb, *flags]
        self.log.append(spell(args))
        return self.execute(args, seconds, accept=accept)

    def answer(self, args, seconds):
        return last_object(self.execute(args, seconds).stdout)

    def execute(self, args, seconds, cwd=None, accept=(0,)):
        """Runs a command to its end, its own children included, and returns what it printed. Raises StepFailed for exit
        codes not accepted and after its time, and OutOfTime when that is the budget's."""
        left = self.budget.remaining()
        if left <= 0:
            raise OutOfTime
        child = subprocess.Popen(args, cwd=cwd, env=self.env, text=True, errors="replace", stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, start_new_session=True)
        try:
            stdout, stderr = child.communicate(timeout=min(seconds, left))
        except subprocess.TimeoutExpired:
            if left < seconds:
                raise OutOfTime from None
            raise StepFailed(f"{Path(args[0]).name}: no end after {seconds} s") from None
        finally:
            if child.poll() is None:
                os.killpg(child.pid, signal.SIGKILL)
                child.communicate()
        if child.returncode not in accept:
            print(stderr or stdout, file=sys.stderr, flush=True)  # a row has one line of it alone
            raise StepFailed(f"{Path(args[0]).name} exited with {child.returncode}: "
                             f"{first_complaint(stderr or stdout)}")
        return subprocess.CompletedProcess(args, child.returncode, stdout, stderr)


def gencode(arch):
    return f"arch=compute_{arch.removeprefix('sm_')},code={arch}"


def launcher_name(directory):
    manifest = json.loads((Path(directory) / "amkc.manifest.json").read_text(encoding="utf-8"))
    return manifest["facts"]["model"]["name"]


def spell(args):
    """A command as one would type it in the repository."""
    short = [os.path.relpath(a, machine.REPO) if os.path.isabs(a) and Path(a).is_relative_to(machine.REPO) else a
             for a in args]
    return shlex.join(short)


def joined(ids):
    return ",".join(str(int(i)) for i in ids)


def last_object(text):
    """The last line that is a JSON object: what --json prints."""
    for line in reversed(text.splitlines()):
        if line.startswith("{"):
            return json.loads(line)
    raise StepFailed("no JSON object was printed")


def first_complaint(text):
    """The line of stderr that says most: the first with an error in it, else the last."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    chosen = next((line for line in lines if "error" in line.lower()), lines[-1] if lines else "it said nothing")
    return chosen[:400]
