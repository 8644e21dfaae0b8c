#!/usr/bin/env python3
"""Everything that docs/results, docs/experiments.md and docs/campaigns.md show, made by one command on a machine with a
GPU: one script after another, each of which goes on where it was.

    python3 bench/everything.py                    all of it: hours, with an hour or two of campaigns
    python3 bench/everything.py --budget 1200      twenty minutes of it; the same command goes on from there
    python3 bench/everything.py --list             the commands, and what is left out here and why

It needs what they need: an NVIDIA GPU, nvcc, numpy, PyTorch and transformers, and Go or --tools with what make
results-tools has put into dist/results elsewhere. What needs Go besides, or matplotlib, is left out where there is
none, and so are searches by predictions where docs/results/searches.json is there, as in every checkout: run
bench/searches.py to make them again.

With a --budget, rows have half of it: of less than 1200 s, those that run for eight minutes are never made. A row of
bench/experiments.py that takes longer than what is left for these begins anew each time: run that script by itself.
A checkout is for one such command at a time.

Exit codes: 0 everything that is not left out was made, and campaigns were carried on, not necessarily to their end; 1
something has failed or is left, and its own words say what; 2 bad usage, or nothing can be measured here.
"""

import argparse
import importlib.util
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import campaigns
import flags
import running
from alone import InUse, sole_use

BENCH = Path(__file__).resolve().parent
REPO = BENCH.parent
PACK = Path("build/campaigns/campaigns.tar.gz")
ROWS_STEP = "rows"
UNUSABLE = 2  # exit code of bad usage or a broken environment
# Where there is no budget: a campaign has no end of its own that can be waited for, and an agent's has few trials.
UNBOUNDED = {"campaigns": 3600, "trials of an agent": 3600}
# Parts of what is left of a budget when a script begins.
ROWS, CAMPAIGNS, AGENT, EXPERIMENTS = 0.5, 0.6, 0.3, 1.0
SLICE = 0.1  # of the time of campaigns, which each has before the next one


def steps(args):
    """The scripts in their order: what each is for, its arguments, its part of the time that is left (None: it takes
    what it takes), and why it is left out, if it is, by what those before it have left."""
    tools = ["--tools", str(args.tools)] if args.tools else []
    gpus = ["--gpus", ",".join(map(str, args.gpus))] if args.gpus else []
    no_go = None if shutil.which("go") else "it needs Go"
    yield ROWS_STEP, ["results.py", *tools, *gpus], ROWS, None
    yield ("campaigns", ["campaigns.py", *tools, *gpus, "--out", str(PACK.parent),
                         *(["--resume", str(PACK)] if (REPO / PACK).exists() else [])], CAMPAIGNS, None)
    gpu = ["--gpu", str(args.gpus[0])] if args.gpus else []
    yield "trials of an agent", ["agent.py", *tools, *gpu, "--out", str(PACK.parent), "--finish"], AGENT, None
    yield ("the page of campaigns", ["campaignpage.py", "--take", str(PACK)], None,
           None if args.list or (REPO / PACK).exists() else f"no campaign has been packed into {PACK}")
    yield ("searches by predictions, and faults", ["searches.py"], None,
           no_go or ("docs/results/searches.json has them" if (REPO / "docs/results/searches.json").exists() else None))
    yield "experiments without a GPU", ["experiments.py"], EXPERIMENTS, no_go
    yield ("drawings", ["draw.py"], None, None if importlib.util.find_spec("matplotlib") else "it needs matplotlib")
    yield "pages", ["results.py", "--render"], None, None


def command(arguments, seconds):
    """A script's command line, with its time."""
    budget = ["--budget", str(max(1, int(seconds)))] if seconds else []
    if arguments[0] == "campaigns.py":
        least = campaigns.LEAST + running.CLOSING["cuda"]
        budget = ["--slice", str(max(least, int(SLICE * (seconds or 0)))), *budget]
    return [sys.executable, str(BENCH / arguments[0]), *arguments[1:], *budget]


def seconds_of(args, name, part, left):
    """How long a script may take; None: as long as it likes."""
    if part is None:
        return None
    if args.budget:
        return part * left
    return UNBOUNDED.get(name)


def parse(argv):
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--budget", type=flags.seconds, metavar="SECONDS", help="stop after about this time")
    p.add_argument("--tools", type=running.path, metavar="DIR", help="prebuilt tools (default: go builds them)")
    p.add_argument("--gpus", type=flags.gpus, metavar="N,...", help="numbers of the GPUs to use")
    p.add_argument("--list", action="store_true", help="print the commands, and run none")
    return p.parse_args(argv)


def main(argv=None):
    args = parse(argv)
    if args.list:
        return run(args)
    try:
        with sole_use(REPO / "build/everything", "end it"):  # what one runs, another would measure with its own
            return run(args)
    except InUse as e:
        print(f"everything.py: error: {e}", file=sys.stderr)
        return 2


def run(args):
    """Runs the scripts, or says which. Returns the exit code."""
    began, failed = time.monotonic(), []
    for name, arguments, part, left_out in steps(args):
        left = args.budget - (time.monotonic() - began) if args.budget else None
        if left_out:
            print(f"{name}: left out: {left_out}", flush=True)
            continue
        seconds = seconds_of(args, name, part, left)
        line = command(arguments, seconds)
        print(f"{name}: {shlex.join(['python3', f'bench/{arguments[0]}', *line[2:]])}", flush=True)
        if args.list:
            continue
        if left is not None and left <= 0 and part is not None:
            print(f"{name}: the time is up", flush=True)
            failed.append(name)
        elif (code := subprocess.run(line, cwd=REPO).returncode) != 0:
            if name == ROWS_STEP and code == UNUSABLE:
                print(f"{name}: nothing can be measured here; it says why above, and nothing else is run", flush=True)
                return UNUSABLE
            failed.append(name)
    if failed:
        print(f"left or failed: {', '.join(failed)}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
