"""Section ablations: what each feature of the kernel is worth, by builds that lack one of them.

All builds of a model run interleaved in one process, so that the rows of a model belong together: made in one go
they come from one measurement.
"""

import traceback
from dataclasses import dataclass, replace

import numpy as np

from accuracy import SEED, SHAPE_POSITIONS
from turns import Entrant, take_turns
from workshop import Case, OutOfTime, Task

MODELS = ("llama-3.2-1b", "qwen3-0.6b-as-llama")
POSITIONS = (128, 2032)
ROUNDS = 3
LAUNCHES = 30  # a turn
STAGES = ("qkv", "o", "gate_up", "down", "lm_head")


@dataclass(frozen=True)
class Variant:
    """A build that lacks a feature, or has another value of a knob."""

    name: str
    what: str
    knobs: tuple = ()
    defines: tuple = ()
    steps: int = 0  # tokens per launch; 0: as many as bench takes by itself


def warps(n):
    """Knobs for so many warps per tile in every stage; which amkc takes by itself depends on the model and on other
    knobs."""
    return tuple(("warps", stage, n) for stage in STAGES)


DEFAULT = Variant("default", "as amkc makes it")
VARIANTS = (
    Variant("flagged-off", "exchanges by counters instead of flagged words", (("exchange", "flagged", 0),)),
    Variant("copies-1", "one copy of each exchanged vector instead of two", (("exchange", "copies", 1),)),
    Variant("in-flight-1", "one chunk in flight instead of three, and thus no stock", (("ring", "in_flight", 1),)),
    Variant("in-flight-2", "two chunks in flight", (("ring", "in_flight", 2),)),
    Variant("in-flight-all", "no cap: 13 chunks in flight, and 8 warps per tile everywhere, as 4 would need more slots",
            (("ring", "in_flight", 13), ("ring", "stock", 0)) + warps(8)),
    Variant("run-ahead-off", "no run-ahead into L2", (("ring", "run_ahead", 0),)),
    Variant("pace-0", "L2 asked for chunks as fast as a lane can ask", (("ring", "pace", 0),)),
    Variant("pace-1600", "1600 cycles between two requests to L2, instead of 800, or of 700 with a stock",
            (("ring", "pace", 1600),)),
    Variant("stock-off", "as many chunks in flight whatever the ring holds, and run-ahead only while it is full",
            (("ring", "stock", 0),)),
    Variant("stock-6", "one chunk in flight while the ring holds six, and run-ahead then", (("ring", "stock", 6),)),
    Variant("chunk-8k", "chunks half as large, twice as many in flight",
            (("ring", "chunk_bytes", 8192), ("ring", "in_flight", 6))),
    Variant("split-off", "no context split over the SMs", (("attention", "split_from", 1 << 30),)),
    Variant("splits-16", "16 splits of the context instead of 8", (("attention", "max_splits", 16),)),
    Variant("barrier", "a barrier of all SMs after each layer", (("loop", "barrier", 1),)),
    Variant("contiguous", "every stage's tiles dealt out from the first SM on", (("", "sm_assignment", "contiguous"),)),
    Variant("pages-none", "a page of its own for every exchange of a step", (("", "page_allocation", "none"),)),
    Variant("warps-4", "4 warps per tile in every stage", warps(4)),
    Variant("warps-8", "8 warps per tile in every stage", warps(8)),
    Variant("bulk-copy-off", "cp.async instead of bulk copies", defines=("AMK_BULK_COPY=0",)),
    Variant("async-copy-off", "loads and stores instead of asynchronous copies",
            defines=("AMK_BULK_COPY=0", "AMK_ASYNC_COPY=0")),
    Variant("tensor-cores-off", "FMA instead of tensor cores", defines=("AMK_TENSOR_CORES=0",)),
    Variant("one-token", "one token a launch instead of 16", steps=1),
)


class Measurement:
    """The turns of one model, taken when the first row asks for them: the default and all variants that are to be
    made."""

    def __init__(self, case):
        self.case = case
        self.taken, self.failed, self.logs = {}, {}, {}  # by the names of variants, and positions

    def row(self, shop, variant, position):
        if (variant.name, position) not in self.taken and variant.name not in self.failed:
            self.measure(shop, variant, position)
        shop.log += self.logs[variant.name]
        none = [{"findings": [self.failed[variant.name]]}] if variant.name in self.failed else []
        return judge_ablation(self.taken.get((DEFAULT.name, position), []), none or self.taken[variant.name, position],
                              variant, position)

    def measure(self, shop, asked, at):
        chosen = [v for v in VARIANTS if v is asked or any(row_id(self.case, v, p) in shop.planned for p in POSITIONS)]
        positions = [p for p in POSITIONS if p == at or any(row_id(self.case, v, p) in shop.planned for v in chosen)]
        before, made, turns = shop.log, {}, []
        try:
            entrants = self.entrants(shop, chosen, made)
            shop.log = turns
            self.taken |= take_turns(shop, entrants, positions, ROUNDS, LAUNCHES)
        except OutOfTime:
            raise
        except Exception as e:  # it would fail again, and take as long
            traceback.print_exc()
            self.failed = {v.name: f"{type(e).__name__}: {e}" for v in chosen} | self.failed
        finally:
            shop.log = before
        self.logs |= {v.name: made[DEFAULT.name] + made.get(v.name, []) + turns for v in chosen}

    def entrants(self, shop, chosen, made):
        """The builds that are interleaved, by name; the commands that make each go into made."""
        entrants = {}
        for v in (DEFAULT, *chosen):
            shop.log = made[v.name] = []
            try:
                entrants[v.name] = Entrant(shop.finish(replace(self.case, knobs=v.knobs), v.defines), v.steps)
            except OutOfTime:
                raise
            except Exception as e:
                if v is DEFAULT:
                    raise
                traceback.print_exc()
                self.failed[v.name] = f"{type(e).__name__}: {e}"
        shop.settle()
        return entrants


def judge_ablation(default, rounds, variant, position):
    """A row: medians over the rounds, and the ratio to the default build in the same round."""
    findings = [f for r in default for f in r["findings"]] + [f"{variant.name}: {f}" for r in rounds
                                                              for f in r["findings"]]
    row = {"passed": not findings, "findings": findings, "variant": variant.name, "what": variant.what,
           "position": position, "rounds": len(rounds)}
    if findings:
        return row
    us, base = ([r["latency_us"]["median"] for r in side] for side in (rounds, default))
    ratios = [a / b for a, b in zip(us, base)]
    return row | {"us": float(np.median(us)), "round_us": us, "default_us": float(np.median(base)),
                  "default_round_us": base,
                  "ratio": float(np.median(ratios)), "spread": max(ratios) - min(ratios),
                  "ceiling_us": float(np.median([r["ceiling_us"]["median"] for r in rounds])),
                  "share_of_ceiling": float(np.median([r["share_of_ceiling"] for r in rounds]))}


def row_id(case, variant, position):
    return f"ablations/{case.name}-{variant.name}-{position}"


def ablations():
    tasks = []
    for model in MODELS:
        case = Case(f"testdata/configs/{model}", "bf16", SEED, SHAPE_POSITIONS)
        measured = Measurement(case)
        tasks += [Task("ablations", f"{case.name}-{v.name}-{p}", case,
                       lambda shop, m=measured, v=v, p=p: m.row(shop, v, p),
                       also=((replace(case, knobs=v.knobs), v.defines),)) for p in POSITIONS for v in VARIANTS]
    return tasks
