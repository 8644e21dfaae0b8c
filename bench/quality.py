"""Section quality: the perplexity of builds, beside that of transformers, on the text of the trained model.

`amkc quality` measures: a short text of 187 predictions, and then the whole text in windows. Needs numpy; transformers
where a build is compared.
"""

from pathlib import Path

import numpy as np

import reference
from workshop import Case, Task, last_object, spell

MODEL = "testdata/models/pycoder-5m"
TEXT = "eval_ids.npy"
TOKENS = 188
LENGTHS = (TOKENS, 16385)  # and the whole text
WINDOW = 512
# dtype and --weights; the first is what is published
FORMATS = (("fp32", ""), ("bf16", ""), ("fp16", ""), ("bf16", "int8"), ("bf16", "fp8"), ("bf16", "int4:g128:sym"),
           ("bf16", "int4"))
SECONDS = 300


def perplexity(dtype, tokens):
    """That of transformers in a dtype, on the same windows: exp of the mean of -log p(next token)."""
    ids = [int(i) for i in np.load(Path(MODEL) / TEXT)[:tokens]]
    total, predictions = 0.0, 0
    with reference.checkpoint(MODEL, dtype) as m:
        for first in range(0, len(ids), WINDOW):
            window = ids[first:first + WINDOW]
            if len(window) > 1:
                total += loss(m.logits(window[:-1]), window[1:])
                predictions += len(window) - 1
    return float(np.exp(total / predictions))


def loss(logits, following):
    """The sum of -log p of the tokens that follow."""
    x = logits.astype(np.float64)
    most = x.max(1)
    return float((most + np.log(np.exp(x - most[:, None]).sum(1)) - x[np.arange(len(x)), following]).sum())


# How far perplexity may be off from transformers' in fp32, relative to it: rounding moves it, and quantising more.
ALLOWED = {"fp32": 1e-5, "bf16": 1e-2, "fp16": 1e-2}
ALLOWED_QUANTISED = 0.2


def judge(report, dtype, weights, theirs, theirs_own):
    """A row of what amkc quality says, beside transformers in fp32 and in the dtype."""
    ours = report["perplexity"]["model"]
    row = {"tokens": report["tokens"], "windows": report["windows"], "perplexity": ours, "transformers_fp32": theirs,
           "transformers": theirs_own, "gap": ours - theirs, "kl": report["kl"]["mean"],
           "top1": report["top1_agreement"], "greedy_tokens": report["greedy"]["tokens"],
           "greedy_mean": report["greedy"]["mean"], "greedy_least": report["greedy"]["min"]}
    allowed = ALLOWED_QUANTISED if weights else ALLOWED[dtype]
    findings = []
    if not abs(row["gap"]) <= allowed * theirs:
        findings = [f"perplexity {ours:.6f}, {theirs:.6f} in transformers; {allowed:g} of it is allowed"]
    return row | {"passed": not findings, "findings": findings}


def name_of(dtype, weights, tokens):
    form = f"-{weights.replace(':', '-')}" if weights else ""
    return f"pycoder-5m-{dtype}{form}-{tokens}"


def row(shop, case, tokens):
    args = [str(shop.tools.amkc), "quality", str(shop.finish(case)), "--against", str(shop.finish(EXACT)), "--device",
            "cuda", "--ids-file", f"{MODEL}/{TEXT}", "--tokens", str(tokens), "--window", str(WINDOW), "--greedy", "64",
            "--json"]
    shop.log.append(spell(args))
    report = last_object(shop.execute(args, SECONDS).stdout)
    exact = perplexity("fp32", tokens)
    return judge(report, case.dtype, case.weights, exact,
                 exact if case.dtype == "fp32" else perplexity(case.dtype, tokens))


EXACT = Case(MODEL, "fp32")


def quality():
    return [Task("quality", name_of(d, w, n), Case(MODEL, d, weights=w),
                 lambda shop, d=d, w=w, n=n: row(shop, Case(MODEL, d, weights=w), n), also=((EXACT, ()),))
            for n in LENGTHS for d, w in FORMATS]
