"""Answers to the published figures of precisions, of other engines and of ablations (bench/answers.py says what an
answer is). Needs the standard library alone."""

from answers import GPUS, MODELS, NAMES, NO_GPU, SMALL, Answer, compared, id_of, shown, us

PLACES = SMALL + MODELS
LONG = tuple((f"compare/{model}-bf16-seed1-max33024", position, f"{name}, at {position:,}")
             for model, name in (("llama-3.2-1b", "1B"), ("llama-3.1-8b", "8B")) for position in (2048, 8192))
QUANTISED = ("int8 and int4 in groups of 128, lm_head of int4 in int8; random weights, each engine held to a reference "
             "in the same run")
VERSUS = "larger is faster: transformers' step in a CUDA graph, in bf16, over amkc's, and not cuBLAS alone"
BELOW_ITS_PEAK = "that of the paper reads at 90 % of its peak, and transformers' here at {} of the ceiling"
ROUNDS = "in brackets the least and the most of the rounds, in place of p10"
NO_VLLM = "vLLM is not on the machines that measure"


def latencies(r, weights):
    """The time of a token, of each model and GPU, and of quantised matrices how many times that of bf16 is."""
    out = []
    for gpu in GPUS:
        for start, position, what in PLACES:
            row, plain = r.row(gpu, id_of(start, position, weights)), r.row(gpu, id_of(start, position, ""))
            out.append(((lambda row, gpu=gpu, what=what, plain=plain: latency(gpu, what, row, plain)), row))
    return out


def latency(gpu, what, row, plain):
    ours = row["engines"]["amkc"]["us"]["median"]
    text = f"{NAMES[gpu]}, {what}: {us(ours)}"
    if plain and plain is not row:
        text += f" ({plain['engines']['amkc']['us']['median'] / ours:.2f}×)"
    return text


def eager_share(r):
    """The least and the most of the ceiling that the step in a CUDA graph reaches in bf16."""
    shares = [row["engines"]["eager"]["share_of_ceiling"] for gpu in GPUS for start, p, _ in PLACES + LONG
              for row in [r.row(gpu, id_of(start, p, ""))]
              if row and "share_of_ceiling" in row["engines"].get("eager", {})]
    return f"{100 * min(shares):.0f} to {100 * max(shares):.0f} %" if shares else "no known share"


def precision(r):
    first, versus = id_of(*SMALL[0][:2], ""), f"{VERSUS}; {BELOW_ITS_PEAK.format(eager_share(r))}"
    out = {"6-bf16": shown(latencies(r, ""), first, f"{NO_GPU.format('RTX 5090')}; amkc has one time: launch, dispatch "
                           "and kernel are one")}
    for weights in ("int8", "int4"):
        row_id = id_of(*SMALL[0][:2], weights)
        out[f"6-{weights}"] = shown(latencies(r, weights), row_id,
                                    "in brackets: bf16 over it, of two rows; " + QUANTISED)
        out[f"6-{weights}-quality"] = alike(r, weights)
    out["6-floor"] = floor(r)
    for key, gpu in (("l4-1b", "L4"), ("l4-2b", "L4"), ("l4-3b", "L4"), ("l4-4b", "L4"), ("l40s-4b", "L40S"),
                     ("l40s-7b", "L40S"), ("a10g-2b", "A10G"), ("a10g-3b", "A10G"), ("a10g-4b", "A10G"),
                     ("a10g-1b", "A10G"), ("a100-1b", "A100"), ("a100-13b", "A100"), ("t4", "T4"),
                     ("t4-p10", "T4"), ("l40s-13b", "L40S or T4")):
        out[f"10-{key}"] = Answer("", "", NO_GPU.format(gpu))
    small = id_of(*SMALL[0][:2], "int8")
    out["10-5090-4l"] = shown(compared(r, SMALL, "int8", "eager", rounds=True), small,
                              f"{NO_GPU.format('RTX 5090')}; {versus}; {ROUNDS}")
    out["10-5090-16l"] = shown(compared(r, MODELS[:1], "int8", "eager"), id_of(*MODELS[0][:2], "int8"),
                               f"{NO_GPU.format('RTX 5090')}; {versus}; the 1B, which has 16 layers")
    out["10-bytes"] = streamed(r)
    out["10-5090-8l"] = Answer("", "", f"{NO_GPU.format('RTX 5090')}, and no row is of 8 layers")
    for key, models, other in (("10-h100-1b", MODELS[:1] + LONG[:2], ""),
                               ("10-h100-13b", MODELS[1:] + LONG[2:], "; 8B in place of 13B")):
        out[key] = shown(compared(r, models, "int8", "eager"), id_of(*models[0][:2], "int8"),
                         f"{versus}{other}; contexts of 128 and more, not 0")
    out["10-int4-l4"] = shown(compared(r, PLACES, "int4", "eager"), id_of(*PLACES[0][:2], "int4"),
                              f"{NO_GPU.format('L4')}; {versus}")
    out["10-position"] = shown(compared(r, PLACES + LONG, "int8", "eager"), id_of(*LONG[0][:2], "int8"),
                               f"{NO_GPU.format('L4')}; {versus}")
    out["10-ring"] = ablation(r, "async-copy-off", "in bf16: loads and stores over asynchronous copies; larger: the "
                              "ring helps")
    for weights, key in (("", "fig6-bf16"), ("int8", "fig6-int8")):
        places = PLACES + LONG if weights == "" else PLACES
        out[key] = shown(compared(r, places, weights, "eager"), id_of(*SMALL[0][:2], weights),
                         f"{NO_GPU.format('RTX 5090')}; {versus}; figure below")
    return out


def alike(r, weights):
    """How many greedy tokens of a quantised build are those of the model in fp32."""
    name = f"pycoder-5m-bf16-{'int8' if weights == 'int8' else 'int4-g128-sym'}-188"
    sides = (("reference VM", r.row("cpu", f"perplexity/{name}")),
             *((NAMES[gpu], r.row(gpu, f"quality/{name}")) for gpu in GPUS))
    return shown([((lambda x, side=side: f"{side}: the first {x['greedy_mean']:.1f} of {x['greedy_tokens']}, the mean "
                    f"of 8 prompts, and {x['greedy_least']}, the fewest; perplexity "
                    f"{100 * x['gap'] / x['transformers_fp32']:+.2f} %"), row)
                  for side, row in sides], f"perplexity/{name}",
                 "pycoder-5m, the trained model that is here; against fp32, and counted to the first that differs: "
                 "neither format is without loss")


def floor(r):
    parts = []
    for gpu in GPUS:
        for start, position, what in PLACES:
            plain, row = r.row(gpu, id_of(start, position, "")), r.row(gpu, id_of(start, position, "int4"))
            parts.append(((lambda row, gpu=gpu, what=what, plain=plain: saved(gpu, what, row, plain)), row))
    return shown(parts, id_of(*SMALL[0][:2], "int4"), "bytes of weights that a token reads; the embedding is not read")


def saved(gpu, what, row, plain):
    times = bytes_over(row, plain)
    return f"{NAMES[gpu]}, {what}: {times:.2f}×" if times else ""


def bytes_over(row, plain):
    """How many times the weights of a row are those in bf16 that a token reads: of the step in bf16 of the same row, or
    of the row in bf16."""
    own = row["engines"]["amkc"].get("weight_bytes")
    theirs = row["engines"].get("eager", {}).get("weight_bytes")
    if own and theirs:
        return theirs / own
    if own and plain and "bytes_per_token" in plain:
        return (plain["bytes_per_token"] - (row["bytes_per_token"] - own)) / own
    return None


def streamed(r):
    def part(gpu, what, row, plain):
        times = bytes_over(row, plain)
        return f"{NAMES[gpu]}, {what}: {1 / times:.2f}×" if times else ""

    parts = [((lambda row, gpu=gpu, what=what, plain=r.row(gpu, id_of(start, p, "")): part(gpu, what, row, plain)),
              r.row(gpu, id_of(start, p, "int8"))) for gpu in GPUS for start, p, what in PLACES]
    return shown(parts, id_of(*SMALL[0][:2], "int8"), "published counts the table of the embedding too, which "
                 "stays in bf16 there; a token reads a row of it, and ours does not count it")


def ablated(r, name, note=""):
    return [((lambda row, what=what, p=p: f"H200, {what}, at {p:,}{note}: {row['ratio']:.2f}×"),
             r.row("h200", f"ablations/{m}-{name}-{p}"))
            for m, what in (("llama-3.2-1b", "1B"), ("qwen3-0.6b-as-llama", "0.6B")) for p in (128, 2032)]


def ablation(r, name, why):
    return shown(ablated(r, name), f"ablations/llama-3.2-1b-{name}-128", why)


def baselines(r):
    row_id, no_5090 = id_of(*SMALL[0][:2], ""), NO_GPU.format("RTX 5090")
    return {
        "11-eager": shown(times(r, "ops"), row_id, f"{no_5090}; transformers' step, launched one by one"),
        "11-graph": shown(times(r, "eager") + times(r, "compile"), row_id,
                          f"{no_5090}; transformers' step in a CUDA graph, as it is and through torch.compile"),
        "11-vllm": Answer("", "", NO_VLLM), "11-vllm-eager": Answer("", "", NO_VLLM),
        "11-vllm-a100": Answer("", "", f"{NO_VLLM}, and {NO_GPU.format('A100')}"),
        "behind-graph": shown(behind(r), row_id, f"{no_5090}; below 1×: amkc is ahead"),
        "9-coalescing": ablation(r, "async-copy-off", "another: weights always lie in the order in which they are "
                                 "loaded; loads and stores over asynchronous copies"),
        "9-coalescing-kernel": Answer("", "", "amkc has one time: launch and kernel are one"),
        "9-tables": ablation(r, "one-token", "nothing is built per launch, tables are constants of the kernel; one "
                             "token a launch over 16"),
        "9-balance": ablation(r, "contiguous", "tiles of every stage dealt out from the first SM on, over a stage "
                              "beginning where the one before ends"),
        "9-pipelining": shown(ablated(r, "in-flight-1") + ablated(r, "run-ahead-off", ", without prefetch alone"),
                              "ablations/llama-3.2-1b-in-flight-1-128", "one chunk on its way over three, and without "
                              "the prefetch into L2 alone"),
        "split-kv": ablation(r, "split-off", "attention that is not split over the context, over amkc's; above 1× the "
                             "split is faster")}


def behind(r):
    """amkc's time over that of the step in a CUDA graph."""
    def part(gpu, what, row):
        times = row["engines"].get("eager", {}).get("times_amkc")
        return f"{NAMES[gpu]}, {what}: {1 / times:.2f}×" if times else ""

    return [((lambda row, gpu=gpu, what=what: part(gpu, what, row)), r.row(gpu, id_of(start, p, "")))
            for gpu in GPUS for start, p, what in PLACES]


def times(r, engine):
    name = {"ops": "one by one", "eager": "in a graph", "compile": "compiled"}[engine]
    return [((lambda row, gpu=gpu, what=what: pair(gpu, what, row, engine, name)), r.row(gpu, id_of(start, p, "")))
            for gpu in GPUS for start, p, what in PLACES]


def pair(gpu, what, row, engine, name):
    e = row["engines"].get(engine, {})
    if "times_amkc" not in e:
        return ""
    return f"{NAMES[gpu]}, {what}: {us(row['engines']['amkc']['us']['median'])}, {us(e['us']['median'])} {name}: " \
           + faster(e["times_amkc"])


def faster(times):
    """How amkc's time compares with one that is so many times as long."""
    return f"{times:.2f}× faster" if times >= 1 else f"{1 / times:.2f}× slower"
