#!/usr/bin/env python3
"""Repeats experiments of two papers with amkc, and puts what comes out beside what they have published:
docs/results/experiments.json, and from it docs/experiments.md.

    python3 bench/experiments.py                              everything
    python3 bench/experiments.py --section coverage           one section
    python3 bench/experiments.py --only 'families/llama-*'    some rows
    python3 bench/experiments.py --budget 600                 what ten minutes are enough for; again for the rest
    python3 bench/experiments.py --render                     docs/experiments.md anew, from the JSON file

It needs Go and numpy, no GPU, and PyTorch and transformers for what is compared with them; rows that lack those say so.
Rows that have passed with the same amkc are not made again. With a --budget, those that were tried least are tried
first; one that takes longer begins anew each time, and wants a larger budget, or none. Exit codes: 0 all selected rows
pass; 1 some do not, or are left; 2 bad usage or a broken environment.
"""

import argparse
import fnmatch
import os
import platform
import subprocess
import sys
import traceback
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import machine

machine.need_numpy()

import coverage
import experimentspage
import flags
import perplexity
import report
import soundness
from alone import InUse, sole_use
from pieces import Piece
from workshop import Budget, OutOfTime

SECTIONS = ("coverage", "families", "refusals", "perplexity", "soundness")
SCHEMA = "amkc.experiments/1"
ROWS, PAGE = Path("docs/results/experiments.json"), Path("docs/experiments.md")


class Refused(Exception):
    """A command that has failed; the text is the last line that it said."""


class Shop:
    """Where rows are made: amkc, Go, and a directory for what they write."""

    Refused = Refused

    def __init__(self, amkc, work, budget):
        self.executable, self.work, self.budget, self.log = amkc, work, budget, []

    def path(self, name):
        return str(self.work / name)

    def directory(self, name):
        (self.work / name).mkdir(parents=True, exist_ok=True)
        return self.path(name)

    def write(self, name, text):
        (self.work / name).write_text(text, encoding="utf-8")
        return self.path(name)

    def amkc(self, *args):
        return self.run([str(self.executable), *args], "amkc")

    def go(self, *args):
        return self.run(["go", *args], "go")

    def run(self, command, called):
        """What a command prints. It is killed when the time is up."""
        self.log.append(" ".join([called, *command[1:]]))
        left = self.budget.remaining()
        if left <= 0:
            raise OutOfTime
        try:
            done = subprocess.run(command, capture_output=True, text=True, cwd=machine.REPO,
                                  timeout=None if left == float("inf") else left)
        except subprocess.TimeoutExpired:
            raise OutOfTime from None
        if done.returncode != 0:
            said = [line for line in (done.stderr + done.stdout).splitlines() if line.strip()]
            raise Refused(next((line for line in said if ": error: " in line), "\n".join(said[-5:])))
        return done.stdout


def tasks(sections, patterns):
    """The selected tasks, in the order in which they run."""
    every = coverage.tasks() + perplexity.tasks() + soundness.tasks()
    chosen = [t for t in every if not sections or t.section in sections]
    return [t for t in chosen if not patterns or any(fnmatch.fnmatch(t.id, p) for p in patterns)]


def make_row(task, shop):
    """Runs a task. What goes wrong is a row too, except that the time is up."""
    shop.log = []
    head = {"section": task.section, "id": task.id, "command": f"python3 bench/experiments.py --only {task.id}"}
    try:
        result = task.run(shop)
    except OutOfTime:
        raise
    except Exception as e:  # one row is never the end of the others
        if not isinstance(e, Refused):
            traceback.print_exc()
        result = {"passed": False, "findings": [f"{type(e).__name__}: {e}"]}
    relative = [step.replace(str(machine.REPO) + os.sep, "") for step in shop.log]
    return head | result | {"steps": relative}


def environment(amkc):
    """What a row depends on: amkc, and what it is compared with. No GPU is used."""
    return {"amkc": f"SHA-256 {machine.digest(amkc)}", "gpu": "not used", "processor": platform.machine(),
            "torch": machine.package("torch"), "transformers": machine.package("transformers"),
            "numpy": machine.package("numpy")}


def parse(argv):
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--section", action="append", choices=SECTIONS, help="only this section; may be repeated")
    p.add_argument("--only", action="append", metavar="PATTERN",
                   help="only rows whose id matches, SECTION/NAME; may be repeated")
    p.add_argument("--list", action="store_true", help="print the ids of the selected rows, and make none")
    p.add_argument("--render", action="store_true",
                   help="write docs/experiments.md from the JSON file, and make no rows")
    p.add_argument("--again", action="store_true", help="make rows again that have passed")
    p.add_argument("--budget", type=flags.seconds, metavar="SECONDS", help="stop after this time")
    p.add_argument("--out", type=Path, default=ROWS, metavar="FILE",
                   help="where rows go (default: docs/results/experiments.json)")
    p.add_argument("--page", type=Path, default=PAGE, metavar="FILE",
                   help="where the page goes (default: docs/experiments.md)")
    p.add_argument("--work", type=Path, default=Path("build/experiments"), metavar="DIR",
                   help="where commands write (default: build/experiments)")
    return p.parse_args(argv)


def store(path):
    """The rows of a JSON file of this script."""
    return report.Store(path, SCHEMA, SECTIONS, ("amkc",))


def render(rows=machine.REPO / ROWS, page=machine.REPO / PAGE):
    """Writes the page of the rows in a JSON file and of those of GPUs beside it, and returns its path."""
    experimentspage.write(page, store(rows), tasks([], []))
    return page


def build_amkc(work):
    """Builds the amkc that rows are made with."""
    path = work.resolve() / "amkc"
    built = subprocess.run([*machine.GO_BUILD, "-o", str(path), "./cmd/amkc"], cwd=machine.REPO,
                           env=os.environ | {"CGO_ENABLED": "0"})
    if built.returncode != 0:
        raise machine.Missing("go cannot build amkc; what it said is above")
    return path


def main(argv=None):
    args = parse(argv)
    os.chdir(machine.REPO)  # paths in rows are relative to it
    chosen = tasks(args.section, args.only)
    if not chosen and not args.render:
        print("experiments.py: error: no row is selected; --list prints all ids", file=sys.stderr)
        return 2
    if args.list:
        print("\n".join(t.id for t in chosen))
        return 0
    try:
        if args.render:
            print(render(args.out, args.page))
            return 0
        rows = store(args.out)  # what is damaged is said before anything is built
        with sole_use(args.work):
            amkc = build_amkc(args.work)
            shop = Shop(amkc, args.work.resolve(), Budget(args.budget))
            return make_rows(args, chosen, rows, shop, environment(amkc))
    except (machine.Missing, InUse, report.Damaged) as e:
        print(f"experiments.py: error: {e}", file=sys.stderr)
        return 2


def make_rows(args, chosen, rows, shop, made_in):
    todo = [t for t in chosen if args.again or not rows.done(t.id, made_in)]
    if len(todo) < len(chosen):
        print(f"{len(chosen) - len(todo)} of {len(chosen)} rows have passed before", flush=True)
    piece = Piece(shop.work, shop.budget, rows, made_in)
    passed = len(chosen) - len(todo) + piece.make(piece.order(todo), lambda t: make_row(t, shop))
    if rows.rows:
        experimentspage.write(args.page, rows, tasks([], []))
    print(f"{passed} of {len(chosen)} rows pass; see {args.page}", flush=True)
    return 0 if passed == len(chosen) else 1


if __name__ == "__main__":
    sys.exit(main())
