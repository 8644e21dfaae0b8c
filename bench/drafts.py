"""Section drafts: what `run --draft ngram` gains on committed texts, testdata/drafts, and that it changes none.

The section is a list of tasks (workshop.py).
"""

from passes import PYCODER, TIMED
from workshop import Case, Task, last_object

ROUNDS = 3
SECONDS = 540  # of an 8B model: twelve texts of some 500 tokens, six times each
# Random weights write none of the texts, so they are scripted: a draft is right where the text has it.
SCRIPTED = tuple(dict.fromkeys(case for case, _ in TIMED if not case.weights and not case.left_out))
WRITTEN = (Case(PYCODER, "bf16", rows=8, sequences=8),)  # by the model itself
JUDGED = "llama-3.1-8b"
# How many times as many tokens per second there are at least: of the texts of a kind together; and of each where they
# repeat little, so that none hides what another loses.
LEAST = {"edit": ("ratio", 1.9), "quotes": ("ratio", 1.9), "fresh": ("lowest", 0.98)}
COUNTS = ("tokens", "passes", "drafted", "accepted", "acceptance", "tokens_per_pass", "tokens_per_read", "ratio",
          "lowest", "highest", "tokens_per_s", "plain_tokens_per_s")


def drafts_row(shop, case, scripted):
    directory = shop.finish(case)
    shop.settle()
    done = shop.on_device(directory, "drafts", *(("--scripted",) if scripted else ()), "--rounds", str(ROUNDS),
                          seconds=SECONDS, accept=(0, 1))
    return judge_drafts(case, scripted, last_object(done.stdout))


def judge_drafts(case, scripted, r):
    """The check passes, drafts change no text, and with the weights that are judged they gain what they should."""
    row = {"scripted": r["scripted"], "rows": r["rows"], "rounds": r["rounds"]}
    if not r["check"]["passed"]:
        return {"passed": False,
                "findings": ["the kernel and the plain kernels differ: " + r["check"]["failures"][0]]} | row
    findings = [r["difference"]] if r["difference"] else []
    kinds = {k["kind"]: {n: k[n] for n in ("texts", *COUNTS)} for k in r["kinds"]}
    findings += [f"there are no texts of kind {kind}" for kind in LEAST if kind not in kinds]
    if r["scripted"] != scripted or not r["passed"] and not findings:
        findings.append("device drafts says that something is wrong, and not what")
    if not findings and case.name == JUDGED:
        findings = [f"{kind}: {kinds[kind][what]:.3f} × the tokens per second; {least} × are needed"
                    for kind, (what, least) in LEAST.items() if not kinds[kind][what] >= least]
    texts = [{n: t[n] for n in ("name", "kind", "prompt", "cut", *COUNTS)} for t in r["texts"]]
    return {"passed": not findings, "findings": findings} | row | {"kinds": kinds, "texts": texts}


def drafts():
    return [Task("drafts", case.key, case, lambda shop, c=case, s=scripted: drafts_row(shop, c, s))
            for cases, scripted in ((SCRIPTED, True), (WRITTEN, False)) for case in cases]
