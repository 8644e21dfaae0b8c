"""Several GPUs of one machine: the rows of bench/results.py, dealt out to a process of it for each GPU.

Each has a directory of builds and a file of rows of its own, which are put into those of the caller in the end, or by
the next run if this one was killed. Rows that share a build are made on one GPU.
"""

import os
import shutil
import subprocess
import sys
import threading
import traceback
from pathlib import Path

import machine
import report
from workshop import Budget

COMMAND = (sys.executable, str(Path(__file__).with_name("results.py")))
ROWS = "rows"  # of a GPU: the files that its process writes
SPARE_SECONDS = 5  # for a process to end after its budget


def deal(chosen, n):
    """The tasks in n lists, each in the order given: those of a build together, with the list that has the fewest."""
    lists, of = [[] for _ in range(n)], {}
    for task in chosen:
        if task.case.key not in of:
            of[task.case.key] = min(range(n), key=lambda i: len(lists[i]))
        lists[of[task.case.key]].append(task)
    return lists


def known(out):
    """The files of rows of a directory."""
    return [store.path for store in report.stores(out)] if out.is_dir() else []


def carry_out(args, chosen, render):
    """Makes the rows of tasks on the GPUs of args, or their builds alone. Returns the exit code."""
    out, work = args.out.resolve(), args.work.resolve()
    budget = Budget(args.budget)
    tools = args.tools and args.tools.resolve()
    with machine.sole_use(work):
        for rows in sorted(work.glob(f"gpu*/{ROWS}")):
            with machine.sole_use(rows.parent):  # by a process that has outlived the one that began it
                gather(rows.parent, out)
        if tools is None:
            machine.build_tools(tools := work / "tools")
        lists = deal(chosen, len(args.gpus))
        codes = {}

        def serve(gpu, tasks):
            try:
                codes[gpu] = process(args, gpu, tasks, out, work / f"gpu{gpu}", tools, budget)
            except Exception:  # one GPU is never the end of the others
                traceback.print_exc()
                codes[gpu] = 1

        threads = [threading.Thread(target=serve, args=(gpu, tasks)) for gpu, tasks in zip(args.gpus, lists) if tasks]
        try:
            for t in threads:
                t.start()
            for t in threads:
                t.join()
        finally:
            if not args.build:
                for gpu in args.gpus:
                    gather(work / f"gpu{gpu}", out)
                if known(out):
                    render(out)
    return code_of(codes.values())


def code_of(codes):
    """The exit code for those of processes, of which one that a signal has ended is negative."""
    return 2 if 2 in codes else int(any(codes))


def gather(work, out):
    """Puts the rows that the process of a GPU has made into those of out, as far as out has none that are newer."""
    for file in known(work / ROWS):
        report.Store(out / file.name).take(report.Store(file))


def process(args, gpu, tasks, out, work, tools, budget):
    """Makes tasks on one GPU. Returns the exit code. What it says is printed with the number of the GPU."""
    shutil.rmtree(work / ROWS, ignore_errors=True)
    (work / ROWS).mkdir(parents=True)
    for file in known(out):  # by these it knows what need not be made again
        shutil.copy2(file, work / ROWS / file.name)
    command = [*COMMAND, "--target", args.target, "--out", str(work / ROWS), "--work", str(work), "--tools", str(tools),
               "--jobs", str(max(1, args.jobs // len(args.gpus)))]
    command += ["--name", args.name] if args.name else []
    command += ["--budget", str(max(1, budget.remaining() - SPARE_SECONDS))] if args.budget else []
    command += ["--again"] if args.again else []
    command += ["--build"] if args.build else []
    for task in tasks:
        command += ["--only", task.id]
    env = dict(os.environ, CUDA_VISIBLE_DEVICES=str(gpu), PYTHONUNBUFFERED="1")
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="replace") as child:
        for line in child.stdout:
            print(f"GPU {gpu}: {line}", end="", flush=True)
    return child.returncode
