#!/usr/bin/env python3
"""Judges candidates for the defaults of amkc against them, for several models and positions, on the GPUs of this
machine.

    python3 bench/candidates.py --tools dist/results --budget 540           all that have no verdict yet, on all GPUs
    python3 bench/candidates.py --only '*/round-robin' --gpus 0,1           some, in the order of the patterns
    python3 bench/candidates.py --resume candidates.json                    on from what a run elsewhere has written
    python3 bench/candidates.py --take candidates.json                      publish them, in docs/campaigns.md
    python3 bench/candidates.py --device cost --target h200 --out build     predictions: no GPU is needed

A campaign finds settings for one model. Before they become defaults, others are judged with them (defaults.py has the
list): each is one final verdict of amkc eval, by the rules of a campaign (docs/search.md). What came of it, be it a
loss, is written to candidates.json in --out after each verdict. What is there, in --resume or among what is published,
is not judged again on the same device over the same defaults. Needs nvcc, and Go or --tools. Exit codes: 0 all that
there was time for was judged; 1 something has failed, and its words are printed; 2 bad usage.
"""

import argparse
import concurrent.futures
import contextlib
import fnmatch
import json
import os
import queue
import sys
import threading
import traceback
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import campaignpage
import flags
import machine
from alone import InUse
from defaults import CANDIDATES, DEFAULTS, Candidate, Shape
from packing import KEY, Unusable, take_key
from ratios import interval
from running import TRIAL_SECONDS, Campaign, Runner, add_flags, begin, gpus, jobs_for, need_target, path

SCHEMA = "amkc.candidates/2"
FILE = "candidates.json"
LEAST = {"cuda": 60, "cost": 3}  # seconds that a verdict is begun for


@dataclass(frozen=True)
class Job:
    candidate: Candidate
    shape: Shape

    @property
    def name(self):
        return f"{self.shape.model}/{self.candidate.name}"

    @property
    def campaign(self):
        """The shape as what runs amkc takes it."""
        where = "models" if self.shape.trained else "configs"
        return Campaign(self.name.replace("/", "-"), f"testdata/{where}/{self.shape.model}", self.shape.positions, "",
                        self.shape.max_seq, (), not self.shape.trained)


def jobs(settled):
    """The verdicts to make: of candidates that are open, and of settled ones too if that is asked for."""
    return [Job(c, s) for c in CANDIDATES if settled or not c.settled for s in c.shapes]


class Judges(Runner):
    """Judges candidates, each GPU one at a time, while the next ones are built."""

    def __init__(self, args, amkc):
        super().__init__(args, amkc)
        self.published = kept(args.docs / "results" / FILE)
        self.rows = kept(args.out / FILE) | (read(args.resume) if args.resume else {})
        self.lock, self.waiting = threading.Lock(), queue.SimpleQueue()

    def done(self, j):
        return any(rows.get(self.id(j), {}).get("device") == self.args.device for rows in (self.rows, self.published))

    def carry_on(self):
        pending = [j for j in self.args.chosen if not self.done(j)]
        with concurrent.futures.ThreadPoolExecutor(self.args.jobs) as pool:
            for j in pending:
                config = self.work / f"{j.campaign.name}.json"
                config.write_text(json.dumps(j.candidate.config), encoding="utf-8")
                built = pool.submit(self.build, j, config) if self.args.device == "cuda" else None
                self.waiting.put((j, config, built))
            judges = [threading.Thread(target=self.serve, args=(gpu,)) for gpu in self.args.gpus]
            for t in judges:
                t.start()
            for t in judges:
                t.join()
            pool.shutdown(cancel_futures=True)
        self.say(f"candidates that have a verdict: {sum(map(self.done, self.args.chosen))} of {len(self.args.chosen)}")

    def id(self, j):
        return f"{self.args.target}/{j.name}/{DEFAULTS}"

    def build(self, j, config):
        """Has both builds made. Whether that goes well is for the verdict to say."""
        self.run(j.campaign, self.args.gpus[0], TRIAL_SECONDS, "eval", *self.model(j.campaign), "--config",
                 str(config), "--device", "cuda", "--build-only", *self.key())

    def serve(self, gpu):
        while self.left() > LEAST[self.args.device]:
            try:
                j, config, built = self.waiting.get_nowait()
            except queue.Empty:
                return
            try:
                if built:
                    concurrent.futures.wait([built], max(0, self.left()))
                    if built.done():
                        built.result()
                if self.left() > LEAST[self.args.device]:
                    self.judged(j, config, gpu)
            except Exception:  # one candidate is never the end of the others
                traceback.print_exc()
                self.failed.append(j.name)

    def judged(self, j, config, gpu):
        result = self.run(j.campaign, gpu, TRIAL_SECONDS, "eval", *self.model(j.campaign), "--config", str(config),
                          "--position", j.shape.positions, "--rung", "final", *self.judge(gpu))
        if not result:
            return
        row = row_of(j, result["verdict"])
        with self.lock:
            self.rows[self.id(j)] = row
            write(self.rows, self.args.out / FILE)
        self.say(f"{self.id(j)}: {spoken(row)}")


def row_of(job, v):
    """What is kept of a verdict."""
    row = {"model": job.shape.model, "candidate": job.candidate.name, "defaults": DEFAULTS,
           "target": v["target"], "device": v["device"], "settings": v["settings"], "class": v["class"],
           "decision": v.get("decision"), "ratio": v.get("ratio"),
           "at": [{k: a[k] for k in ("position", "ratio", "candidate_us", "baseline_us")} for a in v.get("at") or []]}
    if "reason" in v:
        row["code"] = v["reason"]["code"]
    return row | {k: v[k] for k in ("band", "machine", "correctness") if k in v}


def spoken(row):
    if not row["at"]:
        return f"{row['class']} [{row.get('code')}]"
    at = ", ".join(f"{a['ratio']['mean']:.4f} at {a['position']}" for a in row["at"])
    return f"{row['decision']}: {interval(row['ratio'])}; {at}"


def kept(file):
    """The rows of a file, or none where there is no such file."""
    return read(file) if file.exists() else {}


def read(file):
    """The rows of what a run has written."""
    try:
        of = json.loads(Path(file).read_text(encoding="utf-8"))
    except ValueError as e:  # no JSON, or no text
        raise Unusable(f"{file} cannot be read: {e}; want what bench/candidates.py has written") from None
    if not isinstance(of, dict) or of.get("schema") != SCHEMA or not isinstance(of.get("rows"), dict):
        raise Unusable(f"{file} is not of {SCHEMA}; want what bench/candidates.py has written")
    return of["rows"]


def write(rows, file):
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_suffix(".part")
    part.write_text(json.dumps({"schema": SCHEMA, "rows": dict(sorted(rows.items()))}, indent=1) + "\n", "utf-8")
    os.replace(part, file)


def take(file, docs):
    """Puts the measured rows of a run among those that are published, and writes the page anew."""
    rows = {name: r for name, r in read(file).items() if r["device"] == "cuda"}
    store = docs / "results" / FILE
    write(kept(store) | rows, store)
    campaignpage.main(["--docs", str(docs)])
    print(f"{file}: {len(rows)} verdicts, into {store}")


def parse(argv):
    here, target = gpus()
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--only", action="append", metavar="PATTERN",
                   help="MODEL/CANDIDATE that matches; may be repeated, in the order to judge in")
    p.add_argument("--settled", action="store_true", help="judge settled candidates too")
    p.add_argument("--list", action="store_true", help="print the names of the selected ones")
    p.add_argument("--gpus", type=flags.gpus, metavar="N,...", help="numbers of the GPUs to use (default: all)")
    p.add_argument("--take", type=path, metavar="FILE", help="publish what a run has written, and judge nothing")
    p.add_argument("--docs", type=path, default=machine.REPO / "docs", metavar="DIR",
                   help="where --take publishes, and what is published is")
    add_flags(p, target)
    args = p.parse_args(argv)
    every = jobs(args.settled)
    args.chosen = list(dict.fromkeys(j for o in args.only or ["*"] for j in every if fnmatch.fnmatch(j.name, o)))
    args.gpus = args.gpus or here or [0]
    args.jobs = args.jobs or jobs_for(args, 1)
    if not args.chosen:
        p.error("no candidate has such a name; --list prints them")
    if not args.list and not args.take:
        need_target(p, args)
    return args


def main(argv=None):
    args = parse(argv)
    if args.list:
        print("\n".join(j.name for j in args.chosen))
        return 0
    with contextlib.ExitStack() as held:
        try:
            if args.take:
                take(args.take, args.docs)
                return 0
            amkc = held.enter_context(begin(args))
            if args.key:
                take_key(args.key, args.work)
            judges = Judges(args, amkc)
        except (OSError, Unusable, InUse, machine.Missing) as e:
            print(f"candidates.py: error: {e}", file=sys.stderr)
            return 2
        if not (args.work / KEY).exists():  # of which several evaluations would each make one
            first = args.chosen[0].campaign
            judges.run(first, args.gpus[0], 30, "eval", *judges.model(first), "--rung", "screen", *judges.key())
        judges.carry_on()
        return 1 if judges.failed else 0


if __name__ == "__main__":
    sys.exit(main())
