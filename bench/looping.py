"""Section looping: what a loop over layers changes, which must be nothing. sections.py says what a task is."""

from dataclasses import replace

import numpy as np

from accuracy import fixture_dtypes, fixture_ids
from sections import Task
from workshop import Case

# Loops of every form: one kind of layers or several in any order, and a residual of which each SM has rows, or all.
LOOPED = ("testdata/models/pycoder-5m",) + tuple(f"testdata/models/zoo/{name}" for name in (
    "llama-gqa", "llama-mha-tied-bf16", "llama-odd-dims", "llama-rope-llama3", "llama-sharded-fp16", "cohere2-tied",
    "exaone4-windows", "gemma2-split-k", "gemma3-tied", "gpt2", "smollm3-listed"))
UNROLLED = (("loop", "roll", 0),)


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


def looping():
    return [Task("looping", case.key, case, lambda shop, case=case: equality_row(shop, case),
                 also=((replace(case, knobs=UNROLLED), ()),))
            for case in (Case(model, dtype) for model in LOOPED for dtype in fixture_dtypes(model))]
