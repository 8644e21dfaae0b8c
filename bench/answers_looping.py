"""Answers to the figures of the paper on kernel looping (bench/answers.py says what an answer is). Needs the standard
library alone."""

import json
import math
from pathlib import Path

from answers import GPUS, MODELS, NAMES, PEAK, Answer, compared, id_of, shown

GIB = 2**30
CONFIGS = Path(__file__).resolve().parent.parent / "testdata/configs"
SHAPES = {"8b": "llama-3.1-8b", "70b": "llama-3.1-70b"}
# hidden, intermediate, layers, heads, kv heads, head, vocabulary: as testdata/configs/published.txt has it
LARGEST = (16_384, 53_248, 126, 128, 8, 128, 128_256)
COMPUTED = ("computed from the sizes of the model by bench/answers_looping.py: matrices without the embedding, and "
            "attention")


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
    out = {}
    for model in ("8b", "70b", "405b"):
        for batch in (1, 32):
            for context in (4096, 65_536):
                p, cache, flops, read, ratio = of_a_token(model, batch, context)
                out[f"t1-{model}-{batch}-{context}"] = Answer(
                    f"{p:.1f}, {cache:.2f}, {flops:.0f}, {read:.1f}, {ratio:.1f}", "", COMPUTED)
    return out


def boundaries(r, gpu):
    """Rows that time a loop and the same with barriers: (what, row)."""
    short = {"llama-3.2-1b": "1B", "llama-3.2-3b": "3B", "llama-3.1-8b": "8B", "llama-3.1-70b": "70B"}
    out = []
    for row in r.rows(gpu, "barriers") + r.rows(gpu, "boundaries"):
        form = " int4" if row.get("weights") else ""
        out.append((f"{short[row['model']]}{form}, batch {row.get('sequences', 1)}, at {row['position']:,}", row))
    return out


def waiting(row, us):
    """The share of a time by which it is longer than the stream."""
    return (us - row["ceiling_us"]) / us


def ways(row):
    """The times of the ways that a row has, beside the loop: by what a sentence calls them."""
    out = {f"launches for every {of}": x["us"] for of, x in row.get("launches", {}).items()}
    return out | {"barriers": row["barriers_us"]}


def told(row, tell):
    return ", ".join(f"{tell(us)} with {way}" for way, us in ways(row).items())


def looping(r):
    def each(text, only=lambda what: True):
        return [((lambda row, gpu=gpu, what=what: f"{NAMES[gpu]}, {what}: {text(gpu, row)}"), row)
                for gpu in GPUS for what, row in boundaries(r, gpu) if only(what)]

    eight, first = (lambda what: what.startswith("8B, batch 1,")), "boundaries/llama-3.1-8b-bf16-seed1-max33024-4096"
    bench = "contexts/llama-3.1-8b-bf16-seed1-max33024-128"
    one = [((lambda row, gpu=gpu: f"{NAMES[gpu]}: {1e6 / row['latency_us']['median']:,.0f} tokens/s; "
             f"{share(gpu, row)} of the data sheet's peak"), r.row(gpu, bench)) for gpu in GPUS]
    gains = {gpu: gains_of([row for _, row in boundaries(r, gpu)]) for gpu in GPUS}
    each_way = lambda tell: [(lambda row, gpu=gpu: f"{NAMES[gpu]}: " + ", ".join(
        f"{tell(values)} with {way}" for way, values in gains[gpu].items()),
        next((row for _, row in boundaries(r, gpu)), None)) for gpu in GPUS]
    large = each(lambda gpu, row: f"{100 * row['share_of_ceiling']:.1f} % of the ceiling",
                 lambda what: what.startswith("70B"))
    on_one = "one GPU, batch 1; TensorRT-LLM is not on the machines that measure"
    stand_in = "the same bodies on one GPU; barriers: all SMs meet at the end of each layer with the ring drained, " \
               "in one launch"
    two = "amkc decodes on one GPU"
    stages = each(lambda gpu, row: f"{100 * waiting(row, row['launches']['stage']['us']):.1f} % is no streaming where "
                  "every stage is launched" if "launches" in row else "", eight)
    stages = [(text, row) for text, row in stages if "launches" in row]
    return {
        "1-h100": shown(one, bench, on_one), "1-fewer": Answer("", "", f"the paper prints no number; {two}"),
        "1-sn40l": shown(one, bench, "one GPU; tokens in a second, and the share"),
        "4": shown([((lambda row, gpu=gpu: split(gpu, row)), row) for gpu in GPUS
                    for row in r.rows(gpu, "timelines")] + stages,
                   "timelines/llama-3.1-8b-bf16-seed1-max33024-4096",
                   "shares of the SMs' time in one kernel, where kernels have none; the paper prints no number"),
        "5-before": shown(each(lambda gpu, row: told(row, lambda us: f"{100 * waiting(row, us):.1f} %"), eight), first,
                          f"what the time is above the stream's; {stand_in}"),
        "5-after": shown(each(lambda gpu, row: told(row, lambda us: less(row, us)) +
                              f"; looped {100 * waiting(row, row['loop_us']):.1f} %", eight), first, stand_in),
        "8-geomean": shown(each_way(lambda values: f"{mean(values):.3f}× over {len(values)} rows"), first, stand_in),
        "8-most": shown(each_way(lambda values: f"{max(values):.3f}×") +
                        each(lambda gpu, row: told(row, lambda us: f"{us / row['loop_us']:.3f}×")), first, stand_in),
        "9": Answer("", "", two),
        "9-eight": shown(each_way(lambda values: f"{mean(values):.3f}×"), first,
                         f"one GPU, looped and not: geometric means, as of Figure 8; {stand_in}"),
        "9-sixteen": Answer("", "", f"the paper prints no number; {two}"),
        "under-25": shown(one, bench, on_one),
        "kernels": shown(each(lambda gpu, row: launched(row), lambda what: what.startswith("8B, batch 1, at 4,096")),
                         first, "kernels of a token; one with a loop is launched once for several tokens"),
        "10": shown(compared(r, MODELS, "", "compile"), id_of(*MODELS[1][:2], ""),
                    f"other machines: torch.compile in a CUDA graph on the same GPU, over amkc; {two}"),
        "11-h100": shown(one, bench, on_one),
        "11-sn40l": shown(large, "boundaries/llama-3.1-70b-bf16-seed1-max33024-int4-g128-sym-4096",
                          "70B fits one GPU in int4 alone"),
        "12": shown([((lambda row, gpu=gpu: f"{NAMES[gpu]}, {row['model']}: {stream(row, 'loop')} of the producers "
                       f"copy, {stream(row, 'barriers')} with barriers"), row)
                     for gpu in GPUS for row in r.rows(gpu, "timelines")],
                    "timelines/llama-3.1-8b-bf16-seed1-max33024-4096",
                    "producers of the SMs that wait for nothing, the mean and the least over four layers")}


def launched(row):
    """How many kernels a token is in each way that launches, and a layer where every stage is one."""
    ways = row.get("launches")
    if not ways:
        return ""
    stage, layer = ways["stage"]["launches"], ways["layer"]["launches"]
    return f"{stage // (layer - 1)} a layer and {stage} in all where every stage is launched, 1 a layer and {layer} " \
           "in all where every layer is, none for a layer in a loop"


def less(row, us):
    return f"{waiting(row, us) / waiting(row, row['loop_us']):.1f}×"


def gains_of(rows):
    """How many times the loop's time the other ways take, over the rows that have them."""
    out = {}
    for row in rows:
        for way, us in ways(row).items():
            out.setdefault(way, []).append(us / row["loop_us"])
    return out


def share(gpu, row):
    return f"{100 * row['gbs'] / PEAK[gpu]:.0f} %"


def mean(gains):
    return math.exp(sum(map(math.log, gains)) / len(gains))


def split(gpu, row):
    kinds = "; ".join(f"{name}: " + ", ".join(f"{kind} {100 * s:.0f} %" for kind, s in row[name]["shares"].items())
                      for name in ("loop", "barriers"))
    return f"{NAMES[gpu]}, {row['model']}, {kinds}"


def stream(row, name):
    values = row[name]["copying"]
    return f"{100 * sum(values) / len(values):.0f} % ({100 * min(values):.0f} %)"
