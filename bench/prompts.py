"""Section prompts: how long a prompt takes to the first token behind it, beside transformers' dense pass over it.

Correctness comes first: logits of the first positions are held to transformers, and passes over random parts of a text
of the longest prompt's length to single tokens, to the bit. Then both read the same number of tokens in turns, in
processes of their own on one GPU, with the same random weights. Neither time is a target here: the row says what they
are. Quantised matrices have no rival: transformers has none of their values.

Needs numpy; torch and transformers are needed by bench/torch_peer.py alone.
"""

import sys
import traceback
from pathlib import Path

import numpy as np

import criteria
from accuracy import SEED, config, spread_ids
from comparing import ASK_SECONDS, MODELS, OPEN_SECONDS
from endurance import LONG_POSITIONS, judge_bench
from peer import Peer, PeerFailed
from workshop import Case, OutOfTime, StepFailed, Task, last_object

LENGTHS = (512, 2048, 8192)
CASES = tuple((Case(f"testdata/configs/{model}", "bf16", SEED, LONG_POSITIONS), LENGTHS) for model in MODELS) + (
    (Case("testdata/configs/llama-3.1-8b", "bf16", SEED, LONG_POSITIONS, weights="int4"), (2048,)),)
JUDGED = 512  # positions whose logits are held to transformers
ROUNDS = 3
TIMES = 5  # a round, of each; as often as bench reads a prompt
LAUNCHES = 1  # of steps, to warm up and after that, whose latencies are not looked at
TEXTS = 4  # random ways to read a text in parts
PASSES_SECONDS = 600
ATTENTION = "sdpa"


class Measurement:
    """What the rows of a build share, made when the first of them asks: one check, one process of transformers, and
    rounds with every length that is to be measured."""

    def __init__(self, case, lengths):
        self.case, self.lengths = case, lengths
        self.rows, self.failed, self.log = {}, None, []

    def row(self, shop, length):
        if length not in self.rows and not self.failed:
            self.measure(shop, [n for n in self.lengths if n == length or row_id(self.case, n) in shop.planned])
        shop.log += self.log
        if self.failed:
            raise StepFailed(self.failed)
        return self.rows[length]

    def measure(self, shop, lengths):
        before, shop.log = shop.log, []
        try:
            directory = shop.finish(self.case)
            head = judge_passes(shop, directory, max(lengths))
            if self.case.weights:
                self.take(shop, directory, None, lengths, head)
            else:
                self.beside_transformers(shop, directory, lengths, head)
        except OutOfTime:
            raise
        except Exception as e:  # it would fail again, and take as long
            traceback.print_exc()
            self.failed = str(e) if isinstance(e, StepFailed) else f"{type(e).__name__}: {e}"
        finally:
            self.log, shop.log = shop.log, before

    def beside_transformers(self, shop, directory, lengths, head):
        args = [sys.executable, str(Path(__file__).with_name("torch_peer.py")), self.case.model, "--seed",
                str(self.case.seed), "--dtype", self.case.dtype]
        shop.log.append("python3 bench/torch_peer.py " + " ".join(args[2:]))
        rival = Peer(args, shop.work / "prompts-peer.log", shop.budget, shop.env)
        try:
            verdict = judge_logits(shop, directory, rival, self.ids(max(lengths))[:JUDGED])
            head["findings"] = verdict["findings"] + head["findings"]
            head |= {k: verdict[k] for k in ("max_ratio", "rms_ratio", "argmax_wrong", "argmax_decided")}
            self.take(shop, directory, rival, lengths, head)
        finally:
            rival.close()

    def take(self, shop, directory, rival, lengths, head):
        """Makes the rows: with times, unless something is wrong."""
        turns = {n: None for n in lengths} if head["findings"] else take_turns(
            shop, directory, rival, {n: self.ids(n) for n in lengths})
        for n, taken in turns.items():
            self.rows[n] = {"prompt": n} | head | ({"passed": False} if taken is None else judge_times(taken))

    def ids(self, n):
        return spread_ids(n, config(self.case.model)["vocab_size"])


def judge_passes(shop, directory, length):
    """What `device DIR passes` finds, as the beginning of a row."""
    done = shop.on_device(directory, "passes", "--kinds", "prompts", "--positions", str(length), "--cases", str(TEXTS),
                          seconds=PASSES_SECONDS, accept=(0, 1))
    r = last_object(done.stdout)
    findings = [r["difference"]] if r["difference"] else []
    if not findings and not (r["passed"] and r["compared"] > 0):
        findings = ["no logits of passes were compared with those of single tokens"]
    return {"findings": findings, "compared": r["compared"]}


def judge_logits(shop, directory, rival, ids):
    """The verdict on the logits after each id, compared with transformers."""
    fp32, own = (str(shop.work / f"prompts-{name}.npy") for name in ("fp32", "own"))
    try:
        rival.ask({"do": "reference", "ids": ids, "fp32": fp32, "own": own}, OPEN_SECONDS + ASK_SECONDS)
    except PeerFailed as e:
        raise StepFailed(f"no reference: {e}") from None
    got = shop.logits(directory, ids, f"spread_ids({len(ids)}, ...)")
    return criteria.judge_half(got, np.load(own, mmap_mode="r"), np.load(fp32, mmap_mode="r"))


class Turns:
    """Milliseconds to the first token, of amkc and of transformers, round by round; the GPU's clocks while amkc read,
    and its memory for it; and why there are no more of transformers."""

    def __init__(self):
        self.ours, self.theirs, self.clocks, self.bytes, self.lacking = [], [], [], 0, None


def take_turns(shop, directory, rival, prompts):
    """The Turns of each prompt by its length: in a round all lengths, amkc and the rival one after the other."""
    shop.settle()
    turns = {n: Turns() for n in prompts}
    for _ in range(ROUNDS):
        for n, ids in prompts.items():
            t = turns[n]
            done = shop.on_device(directory, "bench", "--json", "--prompt", str(n), "--launches", str(LAUNCHES),
                                  "--warm-up", str(LAUNCHES))
            r = last_object(done.stdout)
            if wrong := judge_bench(r)["findings"]:
                raise StepFailed(wrong[0])
            t.ours.append(r["prompt"]["first_token_us"]["median"] / 1e3)
            t.clocks.append(r["prompt"].get("clocks"))
            t.bytes = r["prompt"]["bytes"]
            if rival is None or t.lacking:
                continue
            try:
                answer = rival.ask({"do": "prefill", "ids": ids, "attention": ATTENTION, "times": TIMES},
                                   OPEN_SECONDS + ASK_SECONDS)
                t.theirs.append(float(np.median(answer["ms"])))
            except PeerFailed as e:
                t.lacking = str(e)
    return turns


def judge_times(t):
    """The rest of a row: medians over the rounds, and of the ratios of those that both have."""
    row = {"rounds": ROUNDS, "passed": True, "first_token_ms": float(np.median(t.ours)), "round_ms": t.ours,
           "round_clocks": t.clocks, "bytes": t.bytes}
    if t.theirs:
        row |= {"transformers_ms": float(np.median(t.theirs)), "transformers_round_ms": t.theirs,
                "times_amkc": float(np.median([a / b for a, b in zip(t.theirs, t.ours)]))}
    return row | ({"passed": None, "not_run": f"transformers: {t.lacking}"} if t.lacking else {})


def row_id(case, length):
    return f"prompts/{case.key}-{length}"


def prompts():
    def task(measured, case, length):
        return Task("prompts", f"{case.key}-{length}", case, lambda shop: measured.row(shop, length))

    return [task(measured, case, n) for case, lengths in CASES for measured in [Measurement(case, lengths)]
            for n in lengths]
