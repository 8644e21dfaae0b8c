"""The perplexity of the trained model on the reference VM, in its formats, beside that of transformers on the CPU. What
is measured is that of bench/quality.py. Must not know how rows are kept or shown.
"""

import json

import quality
from coverage import Task


def tasks():
    return [Task("perplexity", quality.name_of(dtype, weights, quality.TOKENS),
                 lambda shop, dtype=dtype, weights=weights: row(shop, dtype, weights))
            for dtype, weights in quality.FORMATS]


def row(shop, dtype, weights):
    args = ["quality", quality.MODEL, "--against", quality.MODEL, "--dtype", dtype, "--against-dtype", "fp32",
            "--device", "ref", *quality.measure(quality.TOKENS)]
    report = json.loads(shop.amkc(*args, *(["--weights", weights] if weights else [])))
    try:
        theirs = quality.theirs(dtype, quality.TOKENS, "cpu")
    except ModuleNotFoundError as e:
        return {"perplexity": report["perplexity"]["model"], "passed": None, "findings": [],
                "not_run": f"there is no {e.name} here to compare with"}
    return quality.judge(report, dtype, weights, *theirs)
