"""Runs amkc for campaigns of amkc search on GPUs, within the time that there is: what bench/campaigns.py and
bench/agent.py have in common. Needs the standard library alone. Must not know which campaigns there are.
"""

import contextlib
import json
import os
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import flags
import machine
from alone import leading, sole_use
from packing import KEY, resume, take_key
from ratios import interval

# A campaign names its model by an absolute path, and goes on only where that is the same: on any machine, the checkout
# is found by this link.
ROOT = Path("/tmp/amkc-campaigns")
SEED = "1"  # of random weights
# Seconds for what ends a run, by device: a challenge of the best, its confirmation, and the best against the defaults.
CLOSING = {"cuda": 120, "cost": 10}
TRIAL_SECONDS = 360  # after which an evaluation is ended; a build, after a quarter of it


@dataclass(frozen=True)
class Campaign:
    name: str
    model: str
    positions: str
    held_out: str
    max_seq: int
    flags: tuple  # of amkc search: who proposes, and where it begins
    random_weights: bool = True
    seed: int = 1  # of what is proposed
    gpu_seconds: int = 0  # with which it has ended; 0: it goes on
    taught_by: tuple = ()  # campaigns of other models, by which its prior learns
    config: str = ""  # where it begins, as JSON; nothing: at the defaults

    @property
    def cold(self):
        return "--cold" in self.flags


class Runner:
    """Runs amkc for campaigns, each with the time that is left."""

    def __init__(self, args, amkc):
        self.args, self.amkc = args, str(amkc)
        self.work = args.work
        self.end = time.monotonic() + args.budget
        self.failed = []

    def left(self):
        return self.end - time.monotonic()

    def dir(self, c):
        return self.work / c.name

    def say(self, text):
        # A verdict from elsewhere has words of its own, which must not act on a terminal.
        shown = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)
        print(f"{self.args.budget - self.left():6.1f} s  {shown}", flush=True)

    def model(self, c):
        flags = ["--random-weights", SEED] if c.random_weights else []
        return [str(ROOT / c.model), "--dtype", "bf16", "--max-seq", str(c.max_seq), *flags, "--target",
                self.args.target]

    def run(self, c, gpu, seconds, *args, save=None):
        """Runs amkc, and returns what it prints as JSON; None if it was ended or has failed. What it prints is written
        to the file save, if that is given and there is a result."""
        env = dict(os.environ, CUDA_VISIBLE_DEVICES=str(gpu), AMKC_CACHE=str(self.work / "cache"))
        self.dir(c).mkdir(parents=True, exist_ok=True)
        with open(self.dir(c) / "log.txt", "a", encoding="utf-8") as log:
            child = subprocess.Popen([self.amkc, *args, "--json"], env=env, stdout=subprocess.PIPE, stderr=log,
                                     text=True, start_new_session=True)
            try:
                out, _ = child.communicate(timeout=max(1, min(seconds, self.left() - 5)))
            except subprocess.TimeoutExpired:
                out = None
            finally:
                end(child)
        if out is None:
            self.say(f"{c.name}: {args[0]} {args[1] if args[0] == 'campaign' else ''} was ended: it took too long")
            return None
        try:
            result = json.loads(out)
        except json.JSONDecodeError:
            result = {"errors": [{"message": "it printed no JSON"}]}
        # An evaluation that is not PASS has the exit code 1, and is a result all the same.
        if child.returncode != 0 and "verdict" not in result:
            self.failed.append(c.name)
            self.say(f"{c.name}: amkc {args[0]} failed: {json.dumps(result)[:600]}")
            return None
        if save:
            save.with_suffix(".part").write_text(out, encoding="utf-8")
            os.replace(save.with_suffix(".part"), save)
        return result

    def search(self, c, gpu, seconds, *flags):
        """Begins a campaign or carries it on, by amkc search."""
        start = []
        if c.config:
            self.dir(c).mkdir(parents=True, exist_ok=True)
            config = self.dir(c) / "start.json"
            config.write_text(c.config, encoding="utf-8")
            start = ["--config", str(config)]
        return self.run(c, gpu, seconds, "search", *self.model(c), *start, "-o", str(self.dir(c)), "--tag", c.name,
                        "--position", c.positions, "--held-out", c.held_out, *c.flags, "--seed", str(c.seed), *flags,
                        *self.judge(gpu))

    def key(self):
        return ["--key", str(self.work / KEY)]

    def judge(self, gpu):
        turn = ["--turn", str(self.work / f"gpu{gpu}.turn")] if self.args.device == "cuda" else []
        return ["--device", self.args.device, "--timeout", str(TRIAL_SECONDS), *turn, *self.key()]

    def report(self, c):
        """Writes the report of a campaign anew, if it has begun: one that was killed has an older one."""
        if (self.dir(c) / "campaign.json").exists():
            subprocess.run([self.amkc, "campaign", "report", str(self.dir(c))], stdout=subprocess.DEVNULL, check=False)


def end(child):
    """Ends a process with all that it has started: amkc ends its evaluations when it is asked to."""
    for sign, wait in ((signal.SIGTERM, 4), (signal.SIGKILL, 2)):
        if child.poll() is None:
            os.killpg(child.pid, sign)
            try:
                child.wait(wait)
            except subprocess.TimeoutExpired:
                continue
    child.stdout.close()


def outcome(result):
    """What a search has come to, in a line."""
    s, held = result["soundness"], result["held_out"]
    classes = ", ".join(f"{n} {name}" for name, n in s["classes"].items())
    found = interval(held) or "nothing"
    kind = "confirmed" if result["confirmed"] or not held else "not confirmed"
    return (f"{s['trials']} trials: {classes}; estimate {result['estimate']:.4f}, {kind} {found}; "
            f"{result['stop']}")


def gpus():
    """The numbers of the GPUs of this machine, and the target that they are."""
    lines = machine.output("nvidia-smi", "--query-gpu=index,name", "--format=csv,noheader").splitlines()
    names = [line.split(",")[1].strip() for line in lines if "," in line]
    return list(range(len(names))), next((machine.TARGETS[n] for n in names if n in machine.TARGETS), None)


def path(text):
    """A path that stays what it was when the directory is another one."""
    return Path(text).resolve()


def add_flags(parser, target):
    """The flags of what runs campaigns: where they are, by what, and for how long."""
    parser.add_argument("--budget", type=flags.seconds, default=540, metavar="SECONDS",
                        help="end after this time (default: 540)")
    parser.add_argument("--jobs", type=int, metavar="N",
                        help="builds at a time of a campaign (default: by the cores)")
    parser.add_argument("--device", choices=("cuda", "cost"), default="cuda")
    parser.add_argument("--target", default=target, help="as for amkc (default: the GPU of this machine)")
    parser.add_argument("--resume", type=path, metavar="FILE", help="go on from what an earlier run has packed")
    parser.add_argument("--key", type=path, metavar="FILE",
                        help="sign with the key in FILE: to go on from a pack that was published without it")
    parser.add_argument("--work", type=path, default="build/campaigns", metavar="DIR")
    parser.add_argument("--out", type=path, default=os.environ.get("OUT", "build/campaigns"), metavar="DIR")
    parser.add_argument("--tools", type=path, metavar="DIR", help="prebuilt amkc (default: go builds it)")


def need_target(parser, args):
    if not args.target:
        parser.error("no GPU here says what the target is; want --target")


def jobs_for(args, campaigns):
    """How many builds at a time each of so many campaigns has: a build keeps two or three cores busy, and a prediction
    one."""
    return max(2, (os.cpu_count() or 2) // campaigns // (3 if args.device == "cuda" else 1))


@contextlib.contextmanager
def begin(args):
    """Goes to the repository, and has the work directory and the link to this checkout for as long as this lasts; nvcc
    is on PATH then. Yields the path of amkc."""
    os.chdir(machine.REPO)
    machine.number_as_listed()
    with sole_use(args.work), leading(ROOT, machine.REPO):
        if (tools := args.tools) is None:
            machine.build_tools(tools := args.work / "tools")
        os.environ["PATH"] = os.pathsep.join(filter(None, [os.path.dirname(machine.find_cuda("nvcc") or ""),
                                                            os.environ["PATH"]]))
        yield tools / "amkc"


def unpack(args):
    """Puts what --key and --resume name into the work directory."""
    if args.key:
        take_key(args.key, args.work)
    if args.resume:
        resume(args.resume, args.work)
