"""Section prompts: how long a prompt takes to the first token behind it, beside transformers' dense pass over it.

Correctness comes first: logits of the first positions are held to transformers, and passes over random parts of a text
of the prompt's length to single tokens, to the bit. Then both read the same number of tokens in turns, in processes of
their own on one GPU, with the same random weights. Neither time is a target here: the row says what they are.

Needs numpy; torch and transformers are needed by bench/torch_peer.py alone.
"""

import sys
from pathlib import Path

import numpy as np

import criteria
from accuracy import SEED, config, spread_ids
from comparing import ASK_SECONDS, MODELS, OPEN_SECONDS
from endurance import LONG_POSITIONS, judge_bench
from peer import Peer, PeerFailed
from workshop import Case, StepFailed, Task, last_object

LENGTHS = (512, 2048, 8192)
JUDGED = 512  # positions whose logits are held to transformers
ROUNDS = 3
TIMES = 5  # a round, of each; as often as bench reads a prompt
LAUNCHES = 10  # of bench besides, whose latencies are not looked at
CASES = 2  # random ways to read a text in parts
PASSES_SECONDS = 600
ATTENTION = "sdpa"


def prompts_row(shop, case, length):
    ids = spread_ids(length, config(case.model)["vocab_size"])
    directory = shop.finish(case)
    row = judge_passes(shop, directory, length)
    fp32, own = (str(shop.work / f"prompts-{name}.npy") for name in ("fp32", "own"))
    args = [sys.executable, str(Path(__file__).with_name("torch_peer.py")), case.model, "--seed", str(case.seed),
            "--dtype", case.dtype]

    def opened(what):
        shop.log.append("python3 bench/torch_peer.py " + " ".join(args[2:]) + f"  # {what}")
        return Peer(args, shop.work / f"prompts-{what}.log", shop.budget, shop.env)

    reference = opened("reference")
    try:
        reference.ask({"do": "reference", "ids": ids[:JUDGED], "fp32": fp32, "own": own}, OPEN_SECONDS + ASK_SECONDS)
    except PeerFailed as e:
        raise StepFailed(f"no reference: {e}") from None
    finally:
        reference.close()
    got = shop.logits(directory, ids[:JUDGED], f"spread_ids({length}, ...)[:{JUDGED}]")
    verdict = criteria.judge_half(got, np.load(own, mmap_mode="r"), np.load(fp32, mmap_mode="r"))
    row["findings"] = verdict["findings"] + row["findings"]
    row |= {k: verdict[k] for k in ("max_ratio", "rms_ratio", "argmax_wrong", "argmax_decided")}
    if row["findings"]:  # no time without correctness
        return row | {"passed": False}
    rival = opened("prefill")
    try:
        return row | judge_times(*take_turns(shop, directory, rival, ids))
    finally:
        rival.close()


def judge_passes(shop, directory, length):
    """What `device DIR passes` finds, as the beginning of a row."""
    done = shop.on_device(directory, "passes", "--kinds", "prompts", "--positions", str(length), "--cases", str(CASES),
                          seconds=PASSES_SECONDS, accept=(0, 1))
    r = last_object(done.stdout)
    findings = [r["difference"]] if r["difference"] else []
    if not findings and not (r["passed"] and r["compared"] > 0):
        findings = ["no logits of passes were compared with those of single tokens"]
    return {"prompt": length, "findings": findings, "compared": r["compared"]}


def take_turns(shop, directory, rival, ids):
    """Milliseconds to the first token, of amkc and of transformers, round by round; the GPU's clocks while amkc read;
    and why there are no more of transformers."""
    ours, theirs, clocks, lacking = [], [], [], None
    for _ in range(ROUNDS):
        done = shop.on_device(directory, "bench", "--json", "--prompt", str(len(ids)), "--launches", str(LAUNCHES))
        r = last_object(done.stdout)
        wrong = judge_bench(r)["findings"]
        if wrong:
            raise StepFailed(wrong[0])
        ours.append(r["prompt"]["first_token_us"]["median"] / 1e3)
        clocks.append(r["prompt"].get("clocks"))
        if lacking:
            continue
        try:
            answer = rival.ask({"do": "prefill", "ids": ids, "attention": ATTENTION, "times": TIMES},
                               OPEN_SECONDS + ASK_SECONDS)
            theirs.append(float(np.median(answer["ms"])))
        except PeerFailed as e:
            lacking = str(e)
    return ours, theirs, clocks, lacking


def judge_times(ours, theirs, clocks, lacking):
    """The rest of a row: medians over the rounds, and of the ratios of those that both have."""
    row = {"rounds": ROUNDS, "passed": True, "first_token_ms": float(np.median(ours)), "round_ms": ours,
           "round_clocks": clocks}
    if theirs:
        row |= {"transformers_ms": float(np.median(theirs)), "transformers_round_ms": theirs,
                "times_amkc": float(np.median([t / o for t, o in zip(theirs, ours)]))}
    return row | ({"passed": None, "not_run": f"transformers: {lacking}"} if lacking else {})


def prompts():
    def task(model, length):
        case = Case(f"testdata/configs/{model}", "bf16", SEED, LONG_POSITIONS)
        return Task("prompts", f"{case.key}-{length}", case, lambda shop: prompts_row(shop, case, length))

    return [task(model, length) for model in MODELS for length in LENGTHS]
