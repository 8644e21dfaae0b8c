#!/usr/bin/env python3
"""Carries campaigns of amkc search on, on the GPUs of this machine, for so long, and packs what they have come to.

    python3 bench/campaigns.py --tools dist/results --budget 540                  on all GPUs, a campaign on each
    python3 bench/campaigns.py --tools dist/results --budget 540 --resume FILE    from what an earlier run has packed
    python3 bench/campaigns.py --only 'qwen3-*' --gpus 0 --share 3                some, three at a time on one GPU
    python3 bench/campaigns.py --device cost --target h100 --budget 120           predictions: no GPU is needed
    python3 bench/campaigns.py --only 'smollm2-*-seed*' --taught-by FILE          warm ones taught on another GPU

A campaign runs on one GPU at a time; the one that has had a GPU for the shortest time is next. Configurations are
compiled by several processes ahead of the one that measures. Most of the time a campaign waits for nvcc, so that
several may share a GPU (--share): only one at a time measures. What is packed,
campaigns.tar.gz in --out (default: $OUT, else build/campaigns), has the key that signs verdicts: a campaign goes on
with that key, the same amkc and the same flags. What an amkc with other defaults has begun is set aside as
NAME-earlier, and begun anew. Warm ones are taught by campaigns of --work, and by those of the pack that --taught-by
names, with whose key this run signs then. A run may be killed at any time. It needs nvcc, and Go or --tools. Exit
codes: 0 all goes on or has ended; 1 an amkc has failed, and its words are printed; 2 bad usage.
"""

import argparse
import contextlib
import fnmatch
import itertools
import json
import sys
import tarfile
import threading
import traceback
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import flags
import machine
from alone import InUse
from packing import EARLIER, SPENT, Unusable, elsewhere, gpu_seconds, pack, trials
from running import CLOSING, Campaign, Runner, add_flags, begin, gpus, jobs_for, need_target, outcome, path, unpack

CLOSING_MORE = {"cuda": 30, "cost": 0}  # for each of the others that share a GPU, which wait for it
# In the place of that where so far there is nothing to confirm: what is found in the end is confirmed by the next run.
CLOSING_NULL = {"cuda": 60, "cost": 5}
CLOSING_SEEDED = 5  # for the last trials of one that is compared by how far it has come, and not confirmed
LEAST = 40  # seconds that a search is begun for
TIME_IS_UP = "the time is up"
GOES_ON = (TIME_IS_UP, SPENT)  # why a campaign stops that is not at its end
GUIDED = tuple(word for name in ("cost", "cost", "local", "evolve") for word in ("--proposer", name))
LOCAL = tuple(word for name in ("cost", "local", "local", "evolve") for word in ("--proposer", name))


# In the order in which they begin. The first four are those of a machine with four GPUs.
CAMPAIGNS = (
    Campaign("qwen3-0.6b-cold", "testdata/configs/qwen3-0.6b", "128", "176", 2048, ("--cold", *GUIDED)),
    Campaign("llama-3.2-1b-cold", "testdata/configs/llama-3.2-1b", "128", "176", 2048, ("--cold", *GUIDED)),
    Campaign("qwen3-0.6b-far", "testdata/configs/qwen3-0.6b", "2048,8192", "2400,8300", 8448, LOCAL),
    Campaign("llama-3.2-1b-far", "testdata/configs/llama-3.2-1b", "2048,8192", "2400,8300", 8448, LOCAL),
    Campaign("smollm2-135m", "testdata/configs/smollm2-135m", "128", "176", 2048, LOCAL),
    # What seemed to gain at 128 alone lost at 176.
    Campaign("smollm2-135m-near", "testdata/configs/smollm2-135m", "64,128,176", "100,240", 2048, LOCAL),
    # Where nothing was found at both.
    Campaign("qwen3-0.6b-2048", "testdata/configs/qwen3-0.6b", "2048", "1600,2400", 8448, LOCAL),
    # Two kv heads, of which more splits were worth something where contexts are long.
    Campaign("qwen2.5-1.5b-far", "testdata/configs/qwen2.5-1.5b", "2048,8192", "2400,8300", 8448, LOCAL),
    # From what was the default until candidates (defaults.py) had shown that more splits are faster here: does a search
    # find that?
    Campaign("qwen2.5-1.5b-from-16-splits", "testdata/configs/qwen2.5-1.5b", "8192,16384", "6000,12000", 16640, LOCAL,
             config='{"tiling": {"attention": {"max_splits": 16}}}'),
    Campaign("qwen2.5-1.5b", "testdata/configs/qwen2.5-1.5b", "128", "176", 2048, LOCAL),
    Campaign("pycoder-5m", "testdata/models/pycoder-5m", "128", "176", 1024, LOCAL, False),
    Campaign("qwen3-0.6b-overnight", "testdata/configs/qwen3-0.6b", "128,2048", "176,2400", 2560,
             (*LOCAL, "--overnight")),
    Campaign("qwen3-0.6b-cold-random", "testdata/configs/qwen3-0.6b", "128", "176", 2048,
             ("--cold", "--proposer", "random")),
    Campaign("llama-3.2-1b-cold-random", "testdata/configs/llama-3.2-1b", "128", "176", 2048,
             ("--cold", "--proposer", "random")),
)
# A cold start beside a warm one, which has been taught by the campaigns of two other models: ten seeds each, of a model
# whose trials are short.
SEEDS = range(1, 11)
SEEDED_SECONDS = 90
TEACHERS = tuple(c.name for c in CAMPAIGNS[:4])
CAMPAIGNS += tuple(
    Campaign(f"smollm2-135m-{start}-seed{seed}", "testdata/configs/smollm2-135m", "128", "176", 2048, flags, seed=seed,
             gpu_seconds=SEEDED_SECONDS, taught_by=teachers)
    for seed in SEEDS for start, flags, teachers in (
        ("cold", ("--cold", *GUIDED), ()),
        ("warm", ("--cold", *("prior" if word == "cost" else word for word in GUIDED)), TEACHERS)))


class Shop(Runner):
    """Shares the GPUs and the time out among campaigns."""

    def __init__(self, args, amkc, elsewhere=None):
        super().__init__(args, amkc)
        self.teachers = [self.work, elsewhere] if elsewhere else [self.work]  # directories with campaigns that teach
        self.lock, self.teaching = threading.Lock(), threading.Lock()
        self.busy, self.tried, self.gathered = set(), set(), set()

    def taught(self, c):
        """What a campaign's prior learns by: the verdicts of its teachers. Which those are is kept. As soon as one has
        begun, the others learn by the same, however far teachers have come since; on another GPU too, if the pack from
        there says by what."""
        if not c.taught_by:
            return []
        corpus = self.work / f"{'-'.join((*c.taught_by, *(d.name for d in self.teachers[1:])))}.corpus"
        begun = any((self.dir(o) / "campaign.json").exists() for o in CAMPAIGNS if o.taught_by == c.taught_by)
        with self.teaching:
            if corpus not in self.gathered and not (begun and corpus.exists()):
                self.run(c, 0, 60, "campaign", "learn", str(corpus),
                         *(str(path) for d in self.teachers for path in self.teach(d, c.taught_by)), *self.key())
            self.gathered.add(corpus)
        if corpus.exists() and not (self.dir(c) / "campaign.json").exists():
            self.dir(c).mkdir(exist_ok=True)
            verdicts = map(json.loads, corpus.read_text(encoding="utf-8").splitlines())
            of = sorted({f"{v['model']}, {v['target']}" for v in verdicts})
            (self.dir(c) / "taught.json").write_text(json.dumps(of), encoding="utf-8")
        return ["--corpus", str(corpus)]

    def teach(self, directory, names):
        """What campaigns of a directory teach by: from elsewhere, the corpus that warm ones have begun with there."""
        corpus = directory / f"{'-'.join(names)}.corpus"
        if directory != self.work and corpus.exists():
            return [corpus]
        return [directory / name for name in names if trials(directory / name)]

    def set_aside(self, c, gpu):
        """Renames a campaign whose model amkc compiles to something else by now: it cannot be resumed."""
        begun = self.dir(c) / "campaign.json"
        if not begun.exists():
            return
        now = self.run(c, gpu, 60, "eval", *self.model(c), "--rung", "screen", *self.key())
        if now and now["verdict"]["source"] != json.loads(begun.read_text(encoding="utf-8"))["source"]:
            names = (f"{c.name}{EARLIER}{n}" for n in itertools.chain([""], itertools.count(2)))
            aside = next(self.work / n for n in names if not (self.work / n).exists())
            self.dir(c).rename(aside)
            self.say(f"{c.name}: begun by another amkc, and set aside as {aside.name}")

    def closing(self, least=CLOSING):
        return least[self.args.device] + (self.args.share - 1) * CLOSING_MORE[self.args.device]

    def closings(self, c):
        """The seconds that are left for the measurements at the end; for each once that the search is run. One that is
        compared by how far it has come in its GPU seconds has all of the time: what it has found is confirmed when
        these are spent."""
        return (CLOSING_SEEDED,) if c.gpu_seconds else (self.closing(), self.closing(CLOSING_NULL))

    def carry(self, c, gpu, seconds):
        """Carries a campaign on for so long, with the measurements at its end. Where there is nothing to measure then,
        it goes on once more in the time that was left for that."""
        end = self.left() - seconds
        self.set_aside(c, gpu)
        seconds = self.left() - end
        for closing in self.closings(c):
            search = seconds - closing
            self.say(f"{c.name}: GPU {gpu}, {search:.0f} s")
            result = self.search(c, gpu, seconds, "--jobs", str(self.args.jobs), "--gpu-seconds", str(c.gpu_seconds),
                                 *self.taught(c), "--minutes", f"{search / 60:.3f}")
            if not result:
                break
            self.say(f"{c.name}: {outcome(result)}")
            if result["stop"] not in GOES_ON or result["stop"] == SPENT and c.gpu_seconds:
                (self.dir(c) / "ended").write_text(f"{spent(c) if result['stop'] == SPENT else result['stop']}\n",
                                                   encoding="utf-8")
            seconds = self.left() - end
            if result["stop"] != TIME_IS_UP or result["held_out"] or seconds < LEAST + self.closing(CLOSING_NULL):
                break
        if c.cold and not c.gpu_seconds and (best := self.best(c, gpu)):
            self.against(c, gpu, best)

    def best(self, c, gpu):
        status = self.run(c, gpu, 30, "campaign", "status", str(self.dir(c)), *self.key())
        return status and status["best"]

    def against(self, c, gpu, best):
        """Measures the best against the hand-set defaults: no trial of the campaign, which does not know them."""
        path, config = self.dir(c) / "against.json", self.dir(c) / "best.config.json"
        config.write_text(json.dumps(nested(best)), encoding="utf-8")
        if path.exists() and json.loads(path.read_text(encoding="utf-8"))["verdict"]["settings"] == best:
            return
        r = self.run(c, gpu, self.closing(), "eval", *self.model(c), "--config", str(config), "--position",
                     c.positions, *self.judge(gpu))
        if r:
            path.write_text(json.dumps(r), encoding="utf-8")
            v = r["verdict"]
            self.say(f"{c.name}: against the defaults: {v['class']} {json.dumps(v.get('ratio'))}")

    def ended(self, c):
        """Whether a campaign is at its end. One that has spent its GPU seconds goes on if it is to have more now."""
        path = self.dir(c) / "ended"
        why = path.read_text(encoding="utf-8").strip() if path.exists() else SPENT
        return why == spent(c) or not why.startswith(SPENT)

    def next(self):
        """The campaign that has had a GPU for the shortest time, of those that nobody works on and that there is time
        for."""
        with self.lock:
            free = [c for c in self.args.chosen
                    if c.name not in self.busy and c.name not in self.failed and not self.ended(c)
                    and self.left() - 10 >= LEAST + self.closings(c)[0]]
            if not free:
                return None
            c = min(free, key=lambda c: (c.name in self.tried, gpu_seconds(self.dir(c))))
            self.busy.add(c.name)
            self.tried.add(c.name)
            return c

    def serve(self, gpu):
        """Works on campaigns on a GPU until the time is up."""
        while c := self.next():
            try:
                self.carry(c, gpu, min(self.args.slice or self.left(), self.left() - 10))
            except Exception:  # one campaign is never the end of the others
                traceback.print_exc()
                self.failed.append(c.name)
            finally:
                with self.lock:
                    self.busy.discard(c.name)


def nested(settings):
    """Settings by path as a ScheduleConfig."""
    config = {}
    for path, value in settings.items():
        at = config
        *groups, name = path.split(".")
        for group in groups:
            at = at.setdefault(group, {})
        at[name] = int(value) if str(value).isdigit() else value
    return config


def spent(c):
    """Why a campaign that has had its GPU seconds has ended."""
    return f"{SPENT}: {c.gpu_seconds}"


def parse(argv):
    here, target = gpus()
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--only", action="append", metavar="PATTERN", help="campaigns whose name matches; may be repeated")
    p.add_argument("--list", action="store_true", help="print the names of the selected campaigns")
    p.add_argument("--slice", type=flags.seconds, metavar="SECONDS",
                   help="of a campaign before the next one has the GPU (default: all that is left)")
    p.add_argument("--gpus", type=flags.gpus, metavar="N,...", help="numbers of the GPUs to use (default: all)")
    p.add_argument("--share", type=int, default=1, metavar="N", help="campaigns that share a GPU (default: 1)")
    p.add_argument("--taught-by", type=path, metavar="FILE",
                   help="teach warm ones by what a run on another GPU has packed, too")
    add_flags(p, target)
    args = p.parse_args(argv)
    args.chosen = [c for c in CAMPAIGNS if not args.only or any(fnmatch.fnmatch(c.name, o) for o in args.only)]
    args.gpus = args.gpus or here or [0]
    if args.share < 1:
        p.error("--share is how many campaigns have a GPU together; want 1 or more")
    args.jobs = args.jobs or jobs_for(args, len(args.gpus) * args.share)
    if not args.chosen:
        p.error("no campaign has such a name; --list prints them")
    need_target(p, args)
    return args


def main(argv=None):
    args = parse(argv)
    if args.list:
        print("\n".join(c.name for c in args.chosen))
        return 0
    with contextlib.ExitStack() as held:
        try:
            amkc = held.enter_context(begin(args))
            unpack(args)
            teachers = args.taught_by and elsewhere(args.taught_by, args.work)
        except (OSError, tarfile.TarError, Unusable, InUse, machine.Missing) as e:
            print(f"campaigns.py: error: {e}", file=sys.stderr)
            return 2
        return carry_on(args, Shop(args, amkc, teachers))


def carry_on(args, shop):
    """Carries campaigns on until the time is up, and packs what they have come to. Returns the exit code."""
    try:
        workers = [threading.Thread(target=shop.serve, args=(gpu,)) for _ in range(args.share) for gpu in args.gpus]
        for w in workers:
            w.start()
        for w in workers:
            w.join()
    finally:
        for c in args.chosen:
            shop.report(c)
        packed = pack(args.work, args.out)
        shop.say(f"packed {packed.stat().st_size / 1e6:.1f} MB")
    return 1 if shop.failed else 0


if __name__ == "__main__":
    sys.exit(main())
