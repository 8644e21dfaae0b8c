#!/usr/bin/env python3
"""Shows what amkc can do on the GPU of this machine, and writes it down: docs/results/NAME.json, and from it NAME.md.

    python3 bench/results.py                              everything
    python3 bench/results.py --section fixtures --section bench
    python3 bench/results.py --only 'fixtures/llama-*'    some rows
    python3 bench/results.py --budget 600                 what can be done in ten minutes; run it again for the rest
    python3 bench/results.py --gpus 0,1,2                 on several GPUs, rows dealt out to a process for each
    python3 bench/results.py --build                      the builds alone, which rows then find made: nothing is run
    python3 bench/results.py --render                     the pages anew, from the JSON files
    python3 bench/results.py --merge DIR/h100.json        rows that were made elsewhere, into docs/results/h100.json

It needs an NVIDIA GPU, nvcc, numpy, PyTorch and transformers, and Go, or else --tools with what `make results-tools`
has put into dist/results on another machine; --list, --render and --merge need numpy alone. Rows that have passed with
the same amkc on the same GPU are not made again. With a --budget, those that were tried least are tried first. Rows of
soak and sequences run for eight minutes each, and are left where there is less. Exit codes: 0 all selected rows pass; 1
some do not, or are left; 2 bad usage or a broken environment.
"""

import argparse
import contextlib
import fnmatch
import math
import os
import shlex
import sys
import traceback
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import machine

machine.need_numpy()

import ablations
import accuracy
import comparing
import contexts
import drafts
import drawn
import endurance
import first_answer
import library
import passes
import prompts
import quality
import report
import serving
import several
from pieces import Piece
from workshop import Budget, NotRun, OutOfTime, Workshop

# In the order in which they run: what is quick and says most comes first.
SECTIONS = {"fixtures": accuracy.fixtures, "quantised": accuracy.quantised,
            "fallbacks": accuracy.fallbacks, "passes": passes.passes, "endurance": endurance.endurance,
            "sanitizer": endurance.sanitizer, "looping": accuracy.looping, "shapes": accuracy.shapes,
            "sizes": accuracy.sizes, "bench": endurance.bench, "drawn": drawn.drawn, "roofline": endurance.roofline,
            "contexts": contexts.contexts, "compare": comparing.compare, "prompts": prompts.prompts,
            "ablations": ablations.ablations, "pass_times": passes.pass_times, "drafts": drafts.drafts,
            "quality": quality.quality, "sequences": passes.sequences,
            "first_answer": first_answer.first_answer, "serving": serving.serving, "load": serving.load,
            "clients": serving.clients, "library": library.library, "soak": endurance.soak}
# On another GPU than the reference, rows are planned that tell whether the kernel is right there and how fast it is: of
# the fixtures those that have every stage body between them, and of these sections and of builds whose matrices are in
# no file, many of which fit no smaller GPU, none.
REFERENCE = "h200"
ON_REFERENCE = ("looping", "shapes", "prompts", "ablations", "soak")


def tasks(sections, patterns):
    """The selected tasks: those of the sections, or all, whose id matches one of the patterns, if there are any."""
    chosen = [t for name, make in SECTIONS.items() if not sections or name in sections for t in make()]
    return matching(chosen, patterns)


def matching(chosen, patterns):
    return [t for t in chosen if not patterns or any(fnmatch.fnmatch(t.id, p) for p in patterns)]


def make_row(task, shop, command):
    """Runs a task. What goes wrong is a row too, except that the time is up."""
    shop.log = []
    head = {"section": task.section, "id": task.id, "model": task.case.name, "dtype": task.case.dtype}
    if task.case.weights:
        head["weights"] = task.case.weights
    try:
        result = task.run(shop)
    except OutOfTime:
        raise
    except (NotRun, machine.Missing, ModuleNotFoundError) as e:
        result = {"passed": None, "findings": [], "not_run": str(e)}
    except Exception as e:  # one row is never the end of the others
        traceback.print_exc()
        result = {"passed": False, "findings": [f"{type(e).__name__}: {e}"]}
    return head | result | {"defaults": len(report.DEFAULTS), "command": command, "steps": shop.log}


def command_of(task, target):
    return f"python3 bench/results.py --target {shlex.quote(target)} --only {task.id}"


def start_builds(chosen, shop):
    for t in chosen:
        if t.builds:
            shop.start(t.case, t.defines)
        for case, defines in t.also:
            shop.start(case, defines)


def build(chosen, shop):
    """Makes the builds of tasks, and no rows. Returns the exit code."""
    try:
        start_builds(chosen, shop)
        shop.settle()
    except OutOfTime:
        print("the time is up: some builds are left; the same command goes on from here", flush=True)
    finally:
        shop.close()
    outcomes = shop.outcomes()
    for key, wrong in outcomes.items():
        if wrong:
            print(f"{key}: {wrong}", flush=True)
    made = sum(not wrong for wrong in outcomes.values())
    print(f"{made} of {len(outcomes)} builds are made", flush=True)
    return 0 if made == len(outcomes) else 1


def run(chosen, shop, store, environment, command_of, again):
    """Makes the rows that are missing. Returns how many of all have passed."""
    todo = [t for t in chosen if again or not store.done(t.id, environment)]
    if len(todo) < len(chosen):
        print(f"{len(chosen) - len(todo)} of {len(chosen)} rows have passed before", flush=True)
    piece = Piece(shop.work, shop.budget, store, environment)
    todo = piece.order(todo)
    shop.planned = {t.id for t in todo}
    start_builds(todo, shop)
    return len(chosen) - len(todo) + piece.make(todo, lambda t: make_row(t, shop, command_of(t)))


def gpu_numbers(text):
    """Numbers of GPUs: those of 0,1."""
    numbers = text.split(",")
    if not all(n.isascii() and n.isdigit() for n in numbers) or len(set(map(int, numbers))) < len(numbers):
        raise argparse.ArgumentTypeError(f"{text!r}: want numbers of GPUs with commas between them, each once, as in "
                                         "0,1")
    return [int(n) for n in numbers]


def seconds(text):
    try:
        number = float(text)
    except ValueError:
        number = 0
    if not 0 < number < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r}: want seconds, more than 0")
    return number


def add_common(p):
    """The options of everything that makes rows."""
    p.add_argument("--again", action="store_true", help="make rows again that have passed")
    p.add_argument("--target", default="auto", help="as for amkc (default: the GPU of this machine)")
    p.add_argument("--name", help="of the JSON file (default: that of the GPU: h200 for an NVIDIA H200)")
    p.add_argument("--out", type=Path, default=Path("docs/results"), metavar="DIR",
                   help="where results go (default: docs/results)")
    p.add_argument("--work", type=Path, default=Path("build/results"), metavar="DIR",
                   help="where builds go (default: build/results)")
    p.add_argument("--tools", type=Path, metavar="DIR", help="prebuilt amkc and device (default: go builds them)")
    p.add_argument("--build", action="store_true", help="make the builds of the selected rows, and no rows")
    p.add_argument("--budget", type=seconds, metavar="SECONDS", help="stop after this time")
    p.add_argument("--jobs", type=int, default=max(1, (os.cpu_count() or 3) // 3), metavar="N", help="builds at a time")


def parse(argv):
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--section", action="append", choices=list(SECTIONS), help="only this section; may be repeated")
    p.add_argument("--only", action="append", metavar="PATTERN",
                   help="only rows whose id matches, SECTION/NAME; may be repeated")
    p.add_argument("--list", action="store_true", help="print the ids of the selected rows, and make none")
    p.add_argument("--render", action="store_true",
                   help="write the pages from the JSON files, and make no rows")
    p.add_argument("--merge", type=Path, action="append", metavar="FILE",
                   help="put the rows of a JSON file into that of the same name in --out, and make none; may be "
                   "repeated")
    p.add_argument("--gpus", type=gpu_numbers, default=[], metavar="N,...",
                   help="numbers of the GPUs to use, each with builds of its own in --work (default: the first)")
    add_common(p)
    args = p.parse_args(argv)
    given = [f"--{name}" for name, value in vars(args).items() if value != p.get_default(name)]
    if args.merge and (others := [f for f in given if f not in ("--merge", "--out")]):
        p.error(f"--merge makes no rows, and {', '.join(others)} would say which or how; want --out alone beside it")
    return args


def main(argv=None):
    args = parse(argv)
    try:
        return do(args)
    except (machine.Missing, machine.InUse, report.Damaged) as e:
        print(f"results.py: error: {e}", file=sys.stderr)
        return 2


def do(args):
    """What the arguments ask for. Returns the exit code."""
    if args.merge:
        return merge(args.merge, args.out.resolve())
    if args.render:
        print("\n".join(str(path) for path in render(args.out.resolve())))
        return 0
    chosen = tasks(args.section, args.only)
    if not chosen:
        print("results.py: error: no row is selected; --list prints all ids", file=sys.stderr)
        return 2
    if args.list:
        print("\n".join(t.id for t in chosen))
        return 0
    if args.gpus:
        return several.carry_out(args, chosen, render)
    return carry_out(args, chosen, lambda task: command_of(task, args.target))


def planned(name):
    """The ids of the rows that are planned for the file of a GPU, by its name."""
    return [t.id for t in tasks([], []) if name == REFERENCE or t.section not in ON_REFERENCE and (
        t.section != "fixtures" or t.case.name in accuracy.BODIES) and not t.case.left_out]


def render(out):
    """Writes the pages of the JSON files of a directory, and returns their paths."""
    return report.render(out, planned)


def merge(files, out):
    """Puts the rows of files into those of the same names in a directory, where they replace those that were not made
    later. Returns the exit code."""
    if missing := [str(f) for f in files if not f.exists()]:
        print(f"results.py: error: no such file: {', '.join(missing)}", file=sys.stderr)
        return 2
    for made in [report.Store(f) for f in files]:  # all are read before anything is put in
        store = report.Store(out / made.path.name)
        taken = store.take(made)
        left = len(made.rows) - taken
        print(f"{made.path}: {len(made.rows)} rows, of which {report.outcomes(made.rows.values())[0]} pass; {taken} "
              f"put into {os.path.relpath(store.path)}" +
              (f", {left} not: they are not newer, or were not run" if left else ""))
    render(out)
    return 0


def carry_out(args, chosen, command_of):
    """Makes the rows of tasks, or their builds alone, with the options of add_common. Returns the exit code."""
    args.out, args.tools = args.out.resolve(), args.tools and args.tools.resolve()
    os.chdir(machine.REPO)  # paths in rows are relative to it
    machine.number_as_listed()
    budget = Budget(args.budget)
    with contextlib.ExitStack() as held:
        try:
            held.enter_context(machine.sole_use(args.work))
            tools = machine.Tools(args.tools, args.work)
            environment = store = None
            if not args.build:
                environment = machine.environment(tools)
                machine.need_gpu(environment)
                store = report.Store(args.out / f"{args.name or machine.file_name(environment['gpu'])}.json")
        except (machine.Missing, machine.InUse, report.Damaged) as e:
            print(f"{Path(sys.argv[0]).name}: error: {e}", file=sys.stderr)
            return 2
        shop = Workshop(tools, args.work, args.target, args.jobs, budget)
        return build(chosen, shop) if args.build else make_rows(args, chosen, command_of, shop, store, environment)


def make_rows(args, chosen, command_of, shop, store, environment):
    try:
        passed = run(chosen, shop, store, environment, command_of, args.again)
    finally:
        shop.close()
        if store.rows:
            render(args.out)
    print(f"{passed} of {len(chosen)} rows pass; see {os.path.relpath(store.path)}", flush=True)
    return 0 if passed == len(chosen) else 1


if __name__ == "__main__":
    sys.exit(main())
