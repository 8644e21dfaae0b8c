"""Answers to the figures of the paper on kernel looping (bench/answers.py says what an answer is). Needs the standard
library alone."""

import json
import math
from pathlib import Path

from answers import GPUS, MODELS, NAMES, PEAK, Answer, compared, id_of, missing, on_each, shown
from answers_speed import LONG

GIB = 2**30
CONFIGS = Path(__file__).resolve().parent.parent / "testdata/configs"
SHAPES = {"8b": "llama-3.1-8b", "70b": "llama-3.1-70b"}
# hidden, intermediate, layers, heads, kv heads, head, vocabulary: as testdata/configs/published.txt has it
LARGEST = (16_384, 53_248, 126, 128, 8, 128, 128_256)
COMPUTED = ("computed from the sizes of the model by bench/answers_looping.py: matrices without the embedding, and "
            "attention")
RENDER = "python3 bench/experiments.py --render"
WITHDRAWN = "launches for every layer and every stage are withdrawn: each launch walked all layers"
FLOPS = 989.4e12  # a second, of an H100 SXM in bf16 without sparsity, by its data sheet


def sizes(model):
    if model not in SHAPES:
        return LARGEST
    c = json.loads((CONFIGS / SHAPES[model] / "config.json").read_text(encoding="utf-8"))
    heads = c["num_attention_heads"]
    return (c["hidden_size"], c["intermediate_size"], c["num_hidden_layers"], heads, c["num_key_value_heads"],
            c["hidden_size"] // heads, c["vocab_size"])


def of_a_token(model, batch, context):
    """GiB of parameters and of caches in 16 bits, GFLOPs of a pass, GiB that it reads, and FLOPs for a byte."""
    hidden, intermediate, layers, heads, kv_heads, head, vocab = sizes(model)
    matrices = layers * hidden * (2 * heads * head + 2 * kv_heads * head + 3 * intermediate) + vocab * hidden
    parameters = 2 * (matrices + vocab * hidden)
    cache = 2 * 2 * layers * kv_heads * head * context * batch
    flops = batch * (2 * matrices + 2 * 2 * layers * heads * head * context)
    read = 2 * matrices + cache
    return parameters / GIB, cache / GIB, flops / 1e9, read / GIB, flops / read


def intensity(_):
    out, most = {}, 0
    for model in ("8b", "70b", "405b"):
        for batch in (1, 32):
            for context in (4096, 65_536):
                p, cache, flops, read, ratio = of_a_token(model, batch, context)
                most = max(most, ratio)
                out[f"t1-{model}-{batch}-{context}"] = Answer(
                    f"{p:.1f}, {cache:.2f}, {flops:.0f}, {read:.1f}, {ratio:.1f}", RENDER, COMPUTED)
    balance = FLOPS / (PEAK["h100"] * 1e9)
    return out | {"t1-bound": Answer(f"{'all' if most < balance else 'not all'}: at most {most:.1f} FLOPs a byte, of "
                                     f"{balance:.0f} that an H100 computes in the time of one", RENDER, COMPUTED)}


def boundaries(r, gpu):
    """Rows that time a loop and the same with barriers: (what, row)."""
    return [(f"{named(row['model'], row.get('weights'), row.get('sequences', 1))}, at {row['position']:,}", row)
            for row in r.rows(gpu, "barriers") + r.rows(gpu, "boundaries")]


def named(model, weights, batch):
    short = {"llama-3.2-1b": "1B", "llama-3.2-3b": "3B", "llama-3.1-8b": "8B", "llama-3.1-70b": "70B"}
    return f"{short[model]}{' int4' if weights else ''}, batch {batch}"


def planned():
    """What section boundaries is to time: by id, what is timed and at which position."""
    out = {}
    for model, weights in (("llama-3.1-8b", ""), ("llama-3.2-3b", ""), ("llama-3.1-70b", "-int4-g128-sym"),
                           ("llama-3.2-1b", "")):
        for batch, start, end in ((1, "-max33024", ""), (8, "", "-sequences8")):
            # caches of eight sequences of 16,384 tokens do not fit beside 70B
            positions = (4096, 8192, 16_384)[:2 if weights and batch > 1 else 3]
            out |= {f"boundaries/{model}-bf16-seed1{start}{weights}{end}-{p}": (named(model, weights, batch), p)
                    for p in positions}
    return out


def waiting(row, us):
    """The share of a time by which it is longer than the stream."""
    return (us - row["ceiling_us"]) / us


def ways(row):
    """The times of the ways that a row has, beside the loop: by what a sentence calls them. Launches of which each
    walked all layers say nothing of launches, and have none."""
    out = {} if withdrawn(row) else {f"launches for every {of}": x["us"] for of, x in row.get("launches", {}).items()}
    return out | {"barriers": row["barriers_us"]}


def withdrawn(row):
    """Whether each of a row's launches walked all layers, as none does that is marked as done alone."""
    return any(not x.get("alone") for x in row.get("launches", {}).values())


def looping(r):
    def each(text, only=lambda what: True):
        return [((lambda row, gpu=gpu, what=what: f"{NAMES[gpu]}, {what}: {text(gpu, row)}"), row)
                for gpu in GPUS for what, row in boundaries(r, gpu) if only(what)]

    eight, first = (lambda what: what.startswith("8B, batch 1,")), "boundaries/llama-3.1-8b-bf16-seed1-max33024-4096"
    every, large_batch = (lambda what: True), (lambda what: what.startswith("70B int4, batch 8,"))
    bench = "contexts/llama-3.1-8b-bf16-seed1-max33024-128"
    one = on_each(r, bench, lambda gpu, row: f"{NAMES[gpu]}: {1e6 / row['latency_us']['median']:,.0f} tokens/s; "
                  f"{100 * row['gbs'] / PEAK[gpu]:.0f} % of the data sheet's peak")
    large = each(lambda gpu, row: f"{peak_of(gpu, row)}{100 * row['share_of_ceiling']:.1f} % of the ceiling",
                 lambda what: what.startswith("70B"))
    on_one = "one GPU, batch 1; TensorRT-LLM is not on the machines that measure"
    below = "every row stands [below](#boundaries-row-by-row)"
    stand_in = f"the same bodies on one GPU; {below}"
    two = "amkc decodes on one GPU"
    return {
        "1-h100": shown(one, bench, on_one), "1-fewer": Answer("", "", f"the paper prints no number; {two}"),
        "1-sn40l": shown(one, bench, "one GPU; tokens in a second, and the share"),
        "4": shown([((lambda row, gpu=gpu: split(gpu, row)), row) for gpu in GPUS
                    for row in r.rows(gpu, "timelines")],
                   "timelines/llama-3.1-8b-bf16-seed1-max33024-4096",
                   "shares of the SMs' time in one kernel, where kernels have none; the paper prints no number"),
        "5-before": over_rows(r, eight, lambda row, us: 100 * waiting(row, us), lambda x: f"{between(x, 1)} %", first,
                              f"8B, batch 1: the share of the time in which nothing is streamed; {stand_in}"),
        "5-after": over_rows(r, eight, lambda row, us: waiting(row, us) / waiting(row, row["loop_us"]),
                             lambda x: f"{between(x, 1)}×", first,
                             f"8B, batch 1: that share over the loop's; {stand_in}"),
        "8-geomean": over_rows(r, every, gain, lambda x: f"{mean(x):.3f}× over {len(x)} rows", first,
                               f"batch 1 and 8 of amkc's models, launches of batch 1 alone; {stand_in}"),
        "8-most": over_rows(r, every, gain, lambda x: f"{max(x):.3f}×", first, "of 70B in int4 at batch 8, nearest to "
                            f"the published one, {of_large(r, large_batch)}; {stand_in}"),
        "9": Answer("", "", two),
        "9-eight": over_rows(r, every, gain, lambda x: f"{mean(x):.3f}×", first,
                             f"one GPU, looped and not: geometric means, as of Figure 8; {stand_in}"),
        "9-sixteen": Answer("", "", f"the paper prints no number; {two}"),
        "under-25": shown(one, bench, on_one),
        "kernels": shown(each(lambda gpu, row: launched(row), lambda what: what.startswith("8B, batch 1, at 4,096")),
                         first, "kernels of a token; one with a loop is launched once for several tokens"),
        "10": shown(compared(r, MODELS + LONG, "", "compile"), id_of(*MODELS[1][:2], ""),
                    f"other machines: torch.compile in a CUDA graph on the same GPU, over amkc; {two}"),
        "11-h100": shown(one, bench, on_one),
        "11-sn40l": shown(large, "boundaries/llama-3.1-70b-bf16-seed1-max33024-int4-g128-sym-4096",
                          "one GPU, int4: bf16 does not fit one, and int8 was not measured; the ceiling is a stream of "
                          "the same bytes by the same kernel; rows of batch 8 do not say how many bytes they read"),
        "over-90": shown(one, bench, f"8B; 70B above; {two}"),
        "12": shown([((lambda row, gpu=gpu: f"{NAMES[gpu]}, {row['model']}: {stream(row, 'loop')} looped, "
                       f"{stream(row, 'barriers')} with barriers"), row)
                     for gpu in GPUS for row in r.rows(gpu, "timelines")],
                    "timelines/llama-3.1-8b-bf16-seed1-max33024-4096",
                    "of one recorded step: the time of four layers, and the share of the SMs that have a copy on its "
                    "way, the mean and in brackets the least of its microseconds; a share is no bandwidth")}


def gain(row, us):
    return us / row["loop_us"]


def over_rows(r, only, of, tell, row_id, why):
    """An answer for all rows of a kind: for each GPU and way, what there is to tell of its values."""
    parts, selects, gone = [], [], []
    for gpu in GPUS:
        values = {}
        for what, row in boundaries(r, gpu):
            if only(what):
                gone += [gpu] if withdrawn(row) and gpu not in gone else []
                for way, us in ways(row).items():
                    values.setdefault(way, []).append(of(row, us))
        if values:
            parts.append(f"{NAMES[gpu]}: " + ", ".join(f"{tell(x)} with {way}" for way, x in values.items()))
            selects.append(f"python3 bench/results.py --target {gpu} --only 'barriers/*' --only 'boundaries/*'")
    if gone:
        why += f"; {WITHDRAWN} ({', '.join(map(NAMES.get, gone))})"
    return Answer("; ".join(parts), "; ".join(selects), why) if parts else missing(row_id, f"not measured yet; {why}")


def of_large(r, only):
    """What barriers cost of 70B in a large batch."""
    of = [f"{gain(row, row['barriers_us']):.3f}×" for gpu in GPUS for what, row in boundaries(r, gpu) if only(what)]
    return f"it is {' and '.join(of)} with barriers" if of else "there is no row"


def between(values, digits):
    """The least and the most of some values."""
    least, most = (f"{x:.{digits}f}" for x in (min(values), max(values)))
    return least if least == most else f"{least} to {most}"


def peak_of(gpu, row):
    """The share of the data sheet's peak, where a row says how much is read."""
    if "bytes_per_token" not in row:
        return ""
    return f"{100 * row['bytes_per_token'] / row['loop_us'] / 1e3 / PEAK[gpu]:.1f} % of the data sheet's peak, "


def launched(row):
    """How many kernels a token is in each way that launches, and a layer where every stage is one."""
    ways = row.get("launches")
    if not ways:
        return ""
    stage, layer = ways["stage"]["launches"], ways["layer"]["launches"]
    return f"{stage // (layer - 1)} a layer and {stage} in all where every stage is launched, 1 a layer and {layer} " \
           "in all where every layer is, none for a layer in a loop"


def mean(gains):
    return math.exp(sum(map(math.log, gains)) / len(gains))


def split(gpu, row):
    kinds = "; ".join(f"{name}: " + ", ".join(f"{kind} {100 * s:.0f} %" for kind, s in row[name]["shares"].items())
                      for name in ("loop", "barriers"))
    return f"{NAMES[gpu]}, {row['model']}, {kinds}"


def stream(row, name):
    values = row[name]["copying"]
    return f"{len(values) * row['bin_us']:.0f} µs, {100 * sum(values) / len(values):.0f} % ({100 * min(values):.0f} %)"
