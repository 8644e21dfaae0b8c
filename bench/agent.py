#!/usr/bin/env python3
"""Makes the trials of an agent that has no GPU, in a campaign of amkc search as docs/program.md says.

    python3 bench/agent.py --tools dist/results --budget 540                  all experiments that have no verdict yet
    python3 bench/agent.py --tools dist/results --resume campaigns.tar.gz     on from what an earlier run has packed
    python3 bench/agent.py --tools dist/results --resume FILE --finish        and confirms the best in the end
    python3 bench/agent.py --device cost --target h200 --work build/agent     predictions: no GPU is needed

Experiment N is two files of --experiments (default: docs/results/agent): N.json, a configuration as amkc eval reads it,
and N.txt, what the agent expects of it and why. Numbers go from 1 without a gap. The agent writes some, this makes
their trials, the agent reads the verdicts and writes more: what has a verdict is never tried again, and may not be
changed. The campaign begins with the start, all defaults, against itself. Then each experiment is judged in full, as it
is, against the best so far, in the order of the numbers, and its verdict is recorded, whatever it says. --finish
confirms the best at positions that it was not chosen by, once every experiment has its verdict or the campaign is at
its end.

What is packed, campaigns.tar.gz in --out (default: $OUT, else build/campaigns), is what bench/campaigns.py packs:
bench/campaignpage.py --take folds it into docs/campaigns.md. It has the experiments, their verdicts, and the key that
signs them: a campaign goes on with that key and the same amkc. A run may be killed at any time: it is packed after
every verdict. It needs nvcc, and Go or --tools. Exit codes: 0 all that there was time for was tried; 1 an amkc has
failed, and its words are printed; 2 bad usage, or experiments that cannot be tried.
"""

import argparse
import concurrent.futures
import contextlib
import dataclasses
import json
import re
import shutil
import sys
import tarfile
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import campaigns
import machine
from alone import InUse
from packing import EXPERIMENTS, TIMED, Unusable, pack, trials
from ratios import interval
from running import CLOSING, TRIAL_SECONDS, Runner, add_flags, begin, gpus, jobs_for, need_target, outcome, path, unpack

# The same model, positions and start as a campaign in which the machine proposes.
CAMPAIGN = dataclasses.replace(next(c for c in campaigns.CAMPAIGNS if c.name == "qwen3-0.6b-far"),
                               name="qwen3-0.6b-agent", flags=())
LEAST = {"cuda": 60, "cost": 3}  # seconds that a trial is begun for
ASKING = 30  # seconds for what is neither built nor measured


@dataclass(frozen=True)
class Experiment:
    number: int
    config: Path  # what the agent has written
    hypothesis: Path

    def kept(self, directory, suffix):
        """Its files in a campaign: what was tried, why, and what amkc eval has printed of it."""
        return directory / EXPERIMENTS / f"{self.number}{suffix}"


def read(directory):
    """The experiments of a directory, in the order of their numbers."""
    numbers = sorted(int(f.stem) for f in directory.glob("*.json") if re.fullmatch("[1-9][0-9]*", f.stem))
    if not numbers:
        raise Unusable(f"{directory} has no experiments; want 1.json with a configuration, and 1.txt with a hypothesis")
    if numbers != list(range(1, len(numbers) + 1)):
        missing = next(n for n in range(1, len(numbers) + 1) if n not in numbers)
        raise Unusable(f"{directory} has no {missing}.json, and others beyond it; want numbers from 1 without a gap")
    out = [Experiment(n, directory / f"{n}.json", directory / f"{n}.txt") for n in numbers]
    for e in out:
        if not e.hypothesis.exists() or not e.hypothesis.read_text(encoding="utf-8").strip():
            raise Unusable(f"{e.hypothesis} is missing or empty; want what is expected of {e.config.name}, and why")
    return out


class Trials(Runner):
    """Makes the trials of experiments, one after another, on one GPU."""

    def __init__(self, args, amkc, experiments):
        super().__init__(args, amkc)
        self.experiments, self.gpu = experiments, args.gpu
        self.over = False  # the campaign takes no more trials, such as where no gain is left that counts
        self.here = self.dir(CAMPAIGN)

    def verdict(self, e):
        """The verdict on an experiment, recorded or not; None if there is none yet."""
        file = e.kept(self.here, ".verdict.json")
        return json.loads(file.read_text(encoding="utf-8"))["verdict"] if file.exists() else None

    def done(self, e):
        """Whether the campaign has the verdict on an experiment."""
        v = self.verdict(e)
        return v is not None and any((t.get("verdict") or {}).get("signature") == v["signature"]
                                     for t in trials(self.here))

    def check(self):
        """Refuses what was changed since it was tried, or goes without saying what was; and, before a GPU is used,
        what amkc cannot read."""
        for file in sorted((self.here / EXPERIMENTS).glob("*.verdict.json")):
            if (n := int(file.name.split(".")[0])) > len(self.experiments):
                raise Unusable(f"the campaign has a verdict on experiment {n}, and {self.args.experiments} has no "
                               f"{n}.json; want all experiments that were tried")
        for e in self.experiments:
            if self.verdict(e):
                for own, suffix in ((e.config, ".json"), (e.hypothesis, ".txt")):
                    if own.read_bytes() != e.kept(self.here, suffix).read_bytes():
                        raise Unusable(f"{own} is not what it was when experiment {e.number} was tried; want it as it "
                                       "was, and what is new under another number")
            elif not self.run(CAMPAIGN, self.gpu, ASKING, "eval", *self.model(CAMPAIGN), "--config", str(e.config),
                              "--rung", "screen", *self.key()):
                raise Unusable(f"amkc cannot judge {e.config}")

    def build(self, pool):
        """Has what is to be measured on a GPU built ahead, several at a time. Whether that goes well is for the trials
        to say."""
        return [pool.submit(self.run, CAMPAIGN, self.gpu, TRIAL_SECONDS, "eval", *self.model(CAMPAIGN), "--config",
                            str(e.config), "--device", "cuda", "--build-only", *self.key())
                for e in self.experiments if not self.verdict(e)]

    def carry_on(self):
        """Makes the trials that there is time for, and confirms the best if that is wanted."""
        with concurrent.futures.ThreadPoolExecutor(self.args.jobs) as pool:
            builds = self.build(pool) if self.args.device == "cuda" else []
            try:
                if self.start() and (self.try_all() or self.over) and self.args.finish:
                    self.finish()
            finally:
                for b in builds:
                    b.cancel()

    def start(self):
        """Begins the campaign, unless it has begun: the start against itself."""
        if not trials(self.here):
            self.search(CAMPAIGN, self.gpu, TRIAL_SECONDS, "--trials", "1")
        first = trials(self.here)[:1]
        if first and first[0]["verdict"]["class"] not in TIMED:
            self.failed.append(CAMPAIGN.name)
            self.say(f"the start is {first[0]['verdict']['why']}; mend that, and begin in another --work")
            return False
        return bool(first)

    def try_all(self):
        """Tries what has no verdict, and returns whether all have one then."""
        pending = [e for e in self.experiments if not self.done(e)]
        if pending:
            (self.here / "ended").unlink(missing_ok=True)
        for e in pending:
            if self.left() < LEAST[self.args.device]:
                self.say(f"the time is up; experiment {e.number} is next")
                return False
            if not self.try_one(e):
                return False
            pack(self.work, self.args.out)
        self.say(f"experiments that have their verdict: all {len(self.experiments)}")
        return True

    def try_one(self, e):
        """Judges an experiment against the best so far and records the verdict. Returns whether that was done."""
        asked = self.run(CAMPAIGN, self.gpu, ASKING, "campaign", "next", str(self.here), *self.key())
        job = asked and asked.get("job")
        if not job or job["role"] == "confirm":
            if asked:
                self.over = True
                self.say(f"the campaign has come to its end before experiment {e.number}: "
                         f"{asked.get('stop') or 'what is left is to confirm the best'}")
            return False
        file, v = e.kept(self.here, ".verdict.json"), self.verdict(e)
        if not v or v["baseline"] != job["against"]:  # else a run was killed before it could record it
            file.parent.mkdir(exist_ok=True)
            shutil.copy(e.config, e.kept(self.here, ".json"))
            shutil.copy(e.hypothesis, e.kept(self.here, ".txt"))
            baseline = self.here / "baseline.json"
            baseline.write_text(json.dumps(asked["baseline"]), encoding="utf-8")
            if not self.run(CAMPAIGN, self.gpu, TRIAL_SECONDS + ASKING, "eval", *self.model(CAMPAIGN), "--config",
                            str(e.kept(self.here, ".json")), "--baseline", str(baseline), "--position",
                            CAMPAIGN.positions, "--rung", "final", *self.judge(self.gpu), save=file):
                return False
        recorded = self.run(CAMPAIGN, self.gpu, ASKING, "campaign", "record", str(self.here), str(file), *self.key())
        self.say(f"experiment {e.number}: {spoken(self.verdict(e))}")
        return recorded is not None

    def finish(self):
        """Has the best confirmed: a search that makes no more trials than there are."""
        seconds = CLOSING[self.args.device]
        if self.left() < seconds:
            self.say("the time is up; to confirm the best is next")
        elif result := self.search(CAMPAIGN, self.gpu, seconds, "--trials", str(len(trials(self.here)))):
            self.say(outcome(result))
            why = "the campaign takes no more trials" if self.over else "every experiment was tried"
            (self.here / "ended").write_text(why + "\n", encoding="utf-8")


def spoken(v):
    """A verdict in a line."""
    if v["class"] not in TIMED:
        return f"{v['why']} [{v['reason']['code']}]"
    at = ", ".join(f"{a['ratio']['mean']:.4f} at {a['position']}" for a in v["at"])
    return f"{v['decision']}: {interval(v['ratio'])}; {at}; {v['why']}"


def parse(argv):
    here, target = gpus()
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--experiments", type=path, default=machine.REPO / "docs" / "results" / "agent", metavar="DIR")
    p.add_argument("--gpu", type=int, default=(here or [0])[0], metavar="N", help="number of the GPU")
    p.add_argument("--finish", action="store_true", help="confirm the best in the end")
    add_flags(p, target)
    args = p.parse_args(argv)
    need_target(p, args)
    args.jobs = args.jobs or jobs_for(args, 1)
    return args


def main(argv=None):
    args = parse(argv)
    with contextlib.ExitStack() as held:
        try:
            experiments = read(args.experiments)
            amkc = held.enter_context(begin(args))
            unpack(args)
            runner = Trials(args, amkc, experiments)
            runner.check()
        except (OSError, tarfile.TarError, Unusable, InUse, machine.Missing) as e:
            print(f"agent.py: error: {e}", file=sys.stderr)
            return 2
        try:
            runner.carry_on()
        finally:
            runner.report(CAMPAIGN)
            packed = pack(args.work, args.out)
            runner.say(f"packed {packed.stat().st_size / 1e6:.1f} MB")
        return 1 if runner.failed else 0


if __name__ == "__main__":
    sys.exit(main())
