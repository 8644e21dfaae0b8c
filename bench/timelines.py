"""Section timelines: where the time of a step goes, and when its stream stands still, from the spans of every SM.

Two builds, as in section boundaries. A build records its spans by itself (docs/bench.md); here they are added up.
"""

import json
from dataclasses import replace

import numpy as np

from accuracy import SEED
from endurance import LONG_POSITIONS, judge_bench
from looping import BARRIERS
from sections import Task
from workshop import Case, StepFailed, last_object

MODELS = ("llama-3.1-8b", "llama-3.2-1b")
POSITION = 4096
LAUNCHES = 20
CONSUMER, PRODUCER = 1, 2  # processes of a trace
KINDS = ("exchange wait", "compute", "signal")
LAYERS = (8, 11)  # those whose stream is kept, bin by bin
BIN = 1.0  # µs


def timeline_row(shop, case):
    directories = {"loop": shop.finish(case), "barriers": shop.finish(replace(case, knobs=BARRIERS))}
    shop.settle()
    row = {"passed": True, "findings": [], "position": POSITION, "layers": list(LAYERS), "bin_us": BIN}
    for name, directory in directories.items():
        trace = shop.work / f"timeline-{name}.json"
        done = shop.on_device(directory, "bench", "--json", "--position", str(POSITION), "--launches", str(LAUNCHES),
                              "--trace", str(trace))
        report = judge_bench(last_object(done.stdout))
        if not report["passed"]:
            return row | {"passed": False, "findings": report["findings"]}
        row[name] = {"latency_us": report["latency_us"]} | of_trace(json.loads(trace.read_text(encoding="utf-8")))
    return row


def of_trace(trace):
    """How the time of the consumers is shared out, and how many producers copy in each bin of a few layers."""
    if trace["otherData"]["dropped"]:
        raise StepFailed(f"the trace lacks {trace['otherData']['dropped']} spans")
    spans = [e for e in trace["traceEvents"] if e["ph"] == "X"]
    consumers = [e for e in spans if e["pid"] == CONSUMER]
    sms = len({e["tid"] for e in consumers})
    start, end = min(e["ts"] for e in consumers), max(e["ts"] + e["dur"] for e in consumers)
    shares = {kind: sum(e["dur"] for e in consumers if e["cat"] == kind) / sms / (end - start) for kind in KINDS}
    own = [e for e in consumers if LAYERS[0] <= layer_of(e["name"]) <= LAYERS[1]]
    if not own:
        raise StepFailed(f"the trace has nothing of layers {LAYERS[0]} to {LAYERS[1]}")
    first, last = min(e["ts"] for e in own), max(e["ts"] + e["dur"] for e in own)
    waits = [e for e in spans if e["pid"] == PRODUCER]
    waiting = sum(overlap(e, start, end) for e in waits) / sms / (end - start)
    return {"step_us": end - start, "recorded_us": trace["otherData"]["latency_us"], "shares": shares,
            "producer_waits": waiting, "copying": copying(waits, sms, first, last)}


def layer_of(name):
    """The number of the layer of a stage, as L03.qkv has it; -1 for one of none."""
    head = name.partition(".")[0]
    return int(head[1:]) if head[:1] == "L" and head[1:].isdigit() else -1


def overlap(event, start, end):
    return max(0.0, min(end, event["ts"] + event["dur"]) - max(start, event["ts"]))


def copying(waits, sms, first, last):
    """For each bin from first on, the share of producers that wait for nothing: they copy, or wait for copies to
    land."""
    bins = max(1, int(np.ceil((last - first) / BIN)))
    waited = np.zeros(bins)
    for e in waits:
        begin, end = max(first, e["ts"]), min(first + bins * BIN, e["ts"] + e["dur"])
        for i in range(max(0, int((begin - first) / BIN)), bins):
            if first + i * BIN >= end:
                break
            waited[i] += overlap(e, first + i * BIN, first + (i + 1) * BIN)
    return [round(float(x), 3) for x in 1 - waited / sms / BIN]


def timelines():
    cases = [Case(f"testdata/configs/{model}", "bf16", SEED, LONG_POSITIONS) for model in MODELS]
    return [Task("timelines", f"{case.key}-{POSITION}", case, lambda shop, case=case: timeline_row(shop, case),
                 also=((replace(case, knobs=BARRIERS), ()),)) for case in cases]
