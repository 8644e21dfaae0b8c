"""Sections looping and barriers: what a loop over layers changes, which must be nothing, and what it is worth.

Each section is a list of tasks; sections.py says what a task is.
"""

from dataclasses import replace

import numpy as np

from accuracy import SEED, SHAPE_POSITIONS, fixture_dtypes, fixture_ids
from sections import Task
from turns import Entrant, take_turns
from workshop import Case

# Loops of every form: one kind of layers or several in any order, and a residual of which each SM has rows, or all.
LOOPED = ("testdata/models/pycoder-5m",) + tuple(f"testdata/models/zoo/{name}" for name in (
    "llama-gqa", "llama-mha-tied-bf16", "llama-odd-dims", "llama-rope-llama3", "llama-sharded-fp16", "cohere2-tied",
    "exaone4-windows", "gemma2-split-k", "gemma3-tied", "gpt2", "smollm3-listed"))
UNROLLED = (("loop", "roll", 0),)
BARRIERS = (("loop", "barrier", 1),)
ROUNDS = 3  # in which the two kernels are interleaved
LAUNCHES = 100  # a turn
SHAPES = ("testdata/configs/llama-3.2-1b", "testdata/configs/llama-3.1-8b")
POSITIONS = (0, 2032)


def equality_row(shop, case):
    """Logits of the looped build and of one in which every layer has its own stages, bit for bit."""
    ids, where = fixture_ids(case.model)
    looped = np.array(shop.logits(shop.finish(case), ids, where))  # a copy: the next logits go into the same file
    unrolled = shop.logits(shop.finish(replace(case, knobs=UNROLLED)), ids, where)
    return judge_equality(looped, unrolled)


def judge_equality(looped, unrolled):
    """Whether two builds give the same bits; not a number is equal to itself."""
    if looped.shape != unrolled.shape:
        return {"passed": False, "findings": [f"logits of shape {looped.shape} and {unrolled.shape}"]}
    differ = np.argwhere(looped.view(np.uint32) != np.ascontiguousarray(unrolled).view(np.uint32))
    findings = []
    if len(differ):
        position, i = (int(n) for n in differ[0])
        findings = [f"{len(differ)} of {looped.size} logits differ, the first at position {position}, id {i}: "
                    f"{looped[position, i]!r} looped, {unrolled[position, i]!r} unrolled"]
    return {"passed": not findings, "findings": findings, "positions": int(looped.shape[0]), "logits": int(looped.size)}


def barriers_row(shop, case, position):
    """The looped kernel, and the same with a barrier of all SMs at the end of each layer and the ring drained there, in
    turn."""
    entrants = {"loop": Entrant(shop.finish(case)), "barriers": Entrant(shop.finish(replace(case, knobs=BARRIERS)))}
    shop.settle()
    turns = take_turns(shop, entrants, (position,), ROUNDS, LAUNCHES)
    return judge_barriers({name: turns[name, position] for name in entrants}, position)


def judge_barriers(rounds, position):
    """Medians over the rounds; a latency counts if the check that goes with it has passed in the same run."""
    findings = [f for name in rounds for r in rounds[name] for f in r["findings"]]
    row = {"passed": not findings, "findings": findings, "position": position, "rounds": len(rounds["loop"])}
    if findings:
        return row
    us = {name: float(np.median([r["latency_us"]["median"] for r in rounds[name]])) for name in rounds}
    ceiling = float(np.median([r["ceiling_us"]["median"] for r in rounds["loop"]]))
    return row | {"loop_us": us["loop"], "barriers_us": us["barriers"], "gain": us["barriers"] / us["loop"],
                  "ceiling_us": ceiling, "all_us": {name: [r["latency_us"]["median"] for r in rounds[name]]
                                                    for name in rounds}}


def looping():
    return [Task("looping", case.key, case, lambda shop, case=case: equality_row(shop, case),
                 also=((replace(case, knobs=UNROLLED), ()),))
            for case in (Case(model, dtype) for model in LOOPED for dtype in fixture_dtypes(model))]


def barriers():
    return [Task("barriers", f"{case.key}-{position}", case, lambda shop, c=case, p=position: barriers_row(shop, c, p),
                 also=((replace(case, knobs=BARRIERS), ()),))
            for case in (Case(model, "bf16", SEED, SHAPE_POSITIONS) for model in SHAPES) for position in POSITIONS]
