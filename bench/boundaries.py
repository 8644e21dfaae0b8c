"""Section boundaries: what a boundary between layers costs, and how little a loop without any leaves to gain.

Two builds take turns: the kernel as amkc makes it, and the same with a barrier of all SMs at the end of each layer,
before which nothing of the next one is copied. Of one token, the bodies of the first are also launched one by one, a
kernel for every layer and one for every stage, interleaved with the loop in the same process (bench, parts). Models,
batches and contexts are those of the paper on kernel looping, as far as one GPU has room.
"""

from dataclasses import dataclass, replace

import numpy as np

from accuracy import SEED
from endurance import LONG_POSITIONS
from looping import BARRIERS
from sections import Task
from turns import Entrant, take_turns
from workshop import Case, StepFailed

POSITIONS = (4096, 8192, 16_384)
ROOM = 128  # positions behind the last of them
SEQUENCES = 8
ROUNDS = 2
PARTS = ("AMK_PARTS=1",)  # with the kernel that a step is launched with in parts


@dataclass(frozen=True)
class Measured:
    """A build, where it is measured, and how. Builds that do not fit a GPU of 80 GB together are opened one after the
    other."""

    case: Case
    positions: tuple = POSITIONS
    together: bool = True
    launches: int = 20  # a turn
    seconds: float = 40  # for a turn, or for opening a build and checking it


def measured(model, sequences, weights="", positions=POSITIONS, **more):
    room = LONG_POSITIONS if sequences == 1 else positions[-1] + ROOM
    return Measured(Case(f"testdata/configs/{model}", "bf16", SEED, room, weights=weights, sequences=sequences),
                    positions, **more)


LARGE = {"together": False, "launches": 5, "seconds": 150}
MEASURED = (
    measured("llama-3.1-8b", 1), measured("llama-3.1-8b", SEQUENCES, together=False, launches=10),
    measured("llama-3.2-3b", 1), measured("llama-3.2-3b", SEQUENCES),
    measured("llama-3.1-70b", 1, "int4:g128:sym", **LARGE),
    measured("llama-3.1-70b", SEQUENCES, "int4:g128:sym", POSITIONS[:2], **LARGE),  # caches for 16,384 do not fit
    measured("llama-3.2-1b", 1), measured("llama-3.2-1b", SEQUENCES),
)


class Measurement:
    """The turns of one model and batch, taken when the first row asks for them: at all positions of rows that are to be
    made."""

    def __init__(self, what):
        self.what, self.turns, self.steps, self.failed = what, {}, [], None

    def row(self, shop, position):
        if position not in self.turns and not self.failed:
            self.measure(shop, [p for p in self.what.positions
                                if p == position or row_id(self.what, p) in shop.planned])
        shop.log += self.steps
        if self.failed:
            raise self.failed
        return judge(self.turns[position], position, self.what)

    def measure(self, shop, positions):
        before, shop.log = shop.log, self.steps
        try:
            self.take(shop, positions)
        except StepFailed as e:  # it would fail again, and take as long
            self.failed = e
        finally:
            shop.log = before

    def take(self, shop, positions):
        w = self.what
        entrants = {"loop": Entrant(shop.finish(w.case, PARTS if w.case.sequences == 1 else ())),
                    "barriers": Entrant(shop.finish(replace(w.case, knobs=BARRIERS)))}
        shop.settle()
        groups, rounds = [entrants], ROUNDS
        if not w.together:
            groups, rounds = [{name: e} for _ in range(ROUNDS) for name, e in entrants.items()], 1
        taken = {p: {name: [] for name in entrants} for p in positions}
        for group in groups:
            for (name, p), turns in take_turns(shop, group, positions, rounds, w.launches, w.seconds).items():
                taken[p][name] += turns
        self.turns |= taken


def judge(turns, position, what):
    """A row: medians over the rounds. Of several sequences the time is that of their pass."""
    sequences = what.case.sequences
    findings = [f for rounds in turns.values() for r in rounds for f in r["findings"]]
    row = {"position": position, "sequences": sequences, "rounds": ROUNDS, "interleaved": what.together}
    if not findings and sequences > 1:
        turns = {name: [pass_of(r) for r in rounds] for name, rounds in turns.items()}
        if any(r is None for rounds in turns.values() for r in rounds):
            findings = [f"no pass of {sequences} sequences was timed"]
    row |= {"passed": not findings, "findings": findings}
    if findings:
        return row
    us = {name: median(r["latency_us"]["median"] for r in rounds) for name, rounds in turns.items()}
    loop = turns["loop"]
    row |= {"loop_us": us["loop"], "barriers_us": us["barriers"], "gain": us["barriers"] / us["loop"],
            "ceiling_us": median(r["ceiling_us"]["median"] for r in loop),
            "all_us": {name: [r["latency_us"]["median"] for r in rounds] for name, rounds in turns.items()}}
    row["share_of_ceiling"] = row["ceiling_us"] / row["loop_us"]
    for key in ("read_gbs", "bytes_per_token"):
        if key in loop[0]:
            row[key] = median(r[key] for r in loop)
    if sequences == 1:
        row |= launched(loop, us["loop"])
        if len(row["launches"]) < 2:
            return row | {"passed": False, "findings": ["no launches for each layer and stage were timed"]}
    if "drain_us" in loop[0]:
        row["drain_us"] = median(r["drain_us"]["median"] for r in loop)
    return row | {k: loop[-1][k] for k in ("machine",) if k in loop[-1]}


def launched(turns, loop_us):
    """The time of a token whose layers, or stages, are launched one by one: medians over the rounds. alone: each launch
    does its own stages and walks no others, as it did in rows without."""
    out = {}
    for of in ("layer", "stage"):
        own = [p for r in turns for p in r.get("parts", ()) if p["of"] == of]
        if own:
            us = median(p["latency_us"]["median"] for p in own)
            out[of] = {"launches": own[0]["launches"], "us": us, "gain": us / loop_us, "alone": True}
    return {"launches": out}


def pass_of(turn):
    """The pass of several sequences of a turn, with what of the turn holds for it too."""
    found = [p for p in turn.get("passes", ()) if p.get("sequences", 1) > 1]
    return {k: turn[k] for k in ("read_gbs", "machine") if k in turn} | found[0] if found else None


def median(values):
    return float(np.median(list(values)))


def row_id(what, position):
    return f"boundaries/{what.case.key}-{position}"


def boundaries():
    tasks = []
    for what in MEASURED:
        m = Measurement(what)
        defines = PARTS if what.case.sequences == 1 else ()
        also = ((replace(what.case, knobs=BARRIERS), ()),) if what.together else ()
        tasks += [Task("boundaries", f"{what.case.key}-{p}", what.case, lambda shop, m=m, p=p: m.row(shop, p), defines,
                       also) for p in what.positions]
    return tasks
