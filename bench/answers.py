"""What ours is of a published figure, and where the two cannot be compared, why: of each figure of bench/figures.py.

Numbers are those of rows that passed, in docs/results; a figure whose rows are missing says which command makes them.
Needs the standard library alone.
"""

from dataclasses import dataclass
from pathlib import Path

import report

GPUS = ("h100", "h200")
PEAK = {"h100": 3350, "h200": 4800}  # GB/s by the data sheet, as amkc targets has them
NAMES = {"h100": "H100", "h200": "H200"}
NO_GPU = "no {} was to be had"


@dataclass(frozen=True)
class Answer:
    ours: str = ""  # "": there is no number of ours
    command: str = ""  # that made ours, or that would
    why: str = ""  # what keeps the two apart, or why there is no number

    def __post_init__(self):
        if not self.ours and not self.why:
            raise ValueError("neither a number nor a reason")


class Results:
    """The rows of docs/results that passed."""

    def __init__(self, directory, cpu):
        self.stores = {gpu: report.Store(Path(directory) / f"{gpu}.json") for gpu in GPUS}
        self.stores["cpu"] = cpu
        self.searches = read(Path(directory) / "searches.json")  # by predictions (bench/searches.py)
        self.campaigns = read(Path(directory) / "campaigns.json").get("campaigns", {})  # on GPUs (bench/campaigns.py)

    def row(self, where, row_id):
        row = self.stores[where].rows.get(row_id)
        return row if row and row["passed"] else None

    def rows(self, where, section):
        return [r for r in self.stores[where].ordered() if r["section"] == section and r["passed"]]


def read(path):
    """A file of JSON, or nothing where there is none."""
    return report.load(path) if path.exists() else {}


def missing(row_id, why="not measured yet"):
    maker = "experiments" if row_id.startswith(("perplexity/", "families/", "soundness/")) else "results"
    return Answer("", f"python3 bench/{maker}.py --only {row_id}", why)


@dataclass(frozen=True)
class Absent:
    """A part of an answer whose row is planned and not made."""

    gpu: str
    row_id: str
    what: str = ""

    def text(self):
        return f"{self.what}{NAMES[self.gpu]}: **not measured yet**"

    def command(self):
        return f"python3 bench/results.py --target {self.gpu} --only {self.row_id}"


def shown(parts, row_id, why=""):
    """An answer of several (text, row), those without a row left out, and what is said to be Absent after them; row_id
    is what would be made if none is there."""
    absent = [part for part in parts if isinstance(part, Absent)]
    there = [(part[0](part[1]), part[1]) for part in parts if not isinstance(part, Absent) and part[1]]
    there = [(text, row) for text, row in there if text]
    if not there:
        return missing(row_id, "; ".join(filter(None, ("not measured yet", why))))
    return Answer("; ".join([text for text, _ in there] + [x.text() for x in absent]),
                  together([row["command"] for _, row in there] + [x.command() for x in absent]), why)


def on_each(r, row_id, text, gpus=GPUS, what=""):
    """The parts of an answer that has a row for each GPU: text(gpu, row), or that it is not measured yet. what stands
    before each."""
    rows = [(gpu, r.row(gpu, row_id)) for gpu in gpus]
    return [((lambda row, gpu=gpu: what + text(gpu, row)), row) if row else Absent(gpu, row_id, what)
            for gpu, row in rows]


def together(commands):
    """Commands that differ in what they select, as one for each beginning."""
    ids = {}
    for command in dict.fromkeys(commands):
        start, selects, row_id = command.partition(" --only ")
        ids.setdefault(start, []).extend([row_id] if selects else [])
    return "; ".join(" --only ".join([start, *rows]) for start, rows in ids.items())


def us(x):
    return f"{x:,.1f} µs"


# ---- errors and quality --------------------------------------------------------------------------------------------

OTHER_WEIGHTS = "random weights, since the checkpoint is not at hand; every position, against transformers in fp32"


def errors(r):
    def error(gpu, row_id, what):
        return (lambda row: f"{NAMES[gpu]}, {what}: {row['max_error']:.2e}"), r.row(gpu, row_id)

    def greedy(gpu, row_id, what):
        return (lambda row: f"{NAMES[gpu]}, {what}: {row['greedy_tokens']} tokens as transformers"), r.row(gpu, row_id)

    tiny, trained = "fixtures/llama-gqa-fp32", "fixtures/pycoder-5m-fp32"
    small = [error(gpu, tiny, "Llama of 3 layers") for gpu in GPUS]
    smol = [error("h200", "shapes/smollm2-135m-fp32-seed1", "shape of SmolLM2-135M")]
    text = [greedy(gpu, trained, "pycoder-5m, all prompts") for gpu in GPUS]
    row_1b = "shapes/llama-3.2-1b-bf16-seed1"
    bf16 = [*on_each(r, "compare/llama-3.2-1b-bf16-seed1-128", lambda gpu, row: f"{NAMES[gpu]}, 144 positions: "
                     f"{errors_of(row)}"), error("h200", row_1b, "every position")]
    no_5090, no_a100 = NO_GPU.format("RTX 5090"), NO_GPU.format("A100")
    of_trained = "the trained model that is here; SmolLM2's checkpoint is not"
    another = "all 512 positions of another small model"
    return {
        "toy-5090": shown(small, tiny, f"{no_5090}; {another}"),
        "llama3l-5090": shown(small, tiny, f"{no_5090}; {another}"),
        "smol-5090": shown(smol, "shapes/smollm2-135m-fp32-seed1", f"{no_5090}; {OTHER_WEIGHTS}"),
        "greedy-5090": shown(text, trained, f"{no_5090}; {of_trained}"),
        "decode-a100": shown(small, tiny, f"{no_a100}; {another}"),
        "greedy-a100": shown(text, trained, f"{no_a100}; {of_trained}"),
        "decode-h100": shown(small[:1], tiny, another),
        "bf16-h100": shown(bf16, row_1b, "ours is the distance from fp32, published that from eager in bf16, of one "
                           "step; of the three in bf16 that through torch.compile is the nearest to fp32"),
        "greedy-h100": shown(text[:1], trained, of_trained),
        "decode-both": shown(small, tiny, f"{no_a100}; {another}"),
        "int8-gate": shown([gate(gpu, r.row(gpu, "quantised/pycoder-5m-bf16-int8")) for gpu in GPUS],
                           "quantised/pycoder-5m-bf16-int8", "pycoder-5m in bf16 with its matrices in int8, against "
                           "transformers in fp32 with the same values, wherever fp32 decides"),
        **{f"{form}-reference": shown(
            [error(gpu, f"quantised/pycoder-5m-fp32-{form}", "pycoder-5m in fp32") for gpu in GPUS],
            f"quantised/pycoder-5m-fp32-{form}", "against transformers in fp32 with the same values; 1,024 positions, "
            "activations in fp32, added up in another order") for form in ("int8", "int4")},
        "gpu-reference": shown(small, tiny, "against transformers, as above; `amkc check` compares a build with the "
                               "reference VM, and no row keeps that distance"),
        "pinned-fp32": shown(smol + [error("h200", "shapes/llama-3.2-1b-fp32-seed1", "shape of the 1B")],
                             "shapes/llama-3.2-1b-fp32-seed1", f"{no_a100}; every position; published is one step"),
        "pinned-bf16": shown(bf16, row_1b, f"{no_a100}; as of Table 3 above: the distance from fp32")}


def errors_of(row):
    """The largest errors of what a comparison has run in bf16."""
    names = {"amkc": "amkc", "eager": "transformers", "compile": "torch.compile"}
    return ", ".join(f"{row['engines'][e]['max_error']:.2e} {name}" for e, name in names.items()
                     if "max_error" in row["engines"].get(e, {}))


def gate(gpu, row):
    return (lambda x: f"{NAMES[gpu]}: {x['max_error']:.2e} (transformers' own bf16: "
            f"{x['transformers_max_error']:.2e}); {x['argmax_decided'] - x['argmax_wrong']} of {x['argmax_decided']} "
            "best tokens"), row


def quality(r):
    cpu, gpu = "perplexity/pycoder-5m-fp32-188", "quality/pycoder-5m-fp32-188"
    sides = [("reference VM", r.row("cpu", cpu)), *((NAMES[g], r.row(g, gpu)) for g in GPUS)]
    why = "pycoder-5m, the trained model that is here, and its text; as many predictions"

    def each(text):
        return [((lambda row, name=name: f"{name}: {text(row)}"), row) for name, row in sides]

    def long(row):
        return f"pycoder-5m: {min(row.get('equal', 0), 64)} of {min(row.get('compared', 0), 64)}"

    alike = [x for x in r.rows("cpu", "coverage") + r.rows("cpu", "families") if x.get("error") is not None]
    worst = max((x["error"] for x in alike), default=0)
    return {
        "perplexity": shown(each(lambda x: f"{x['perplexity']:.6f}, {x['transformers_fp32']:.6f}"), cpu, why),
        "perplexity-gap": shown(each(lambda x: f"{abs(x['gap']):.2e}"), cpu, why),
        "long-greedy": shown([(long, r.row("cpu", "families/pycoder-5m"))], "families/pycoder-5m",
                             "every family and shape has its row [above](#e1-coverage-every-family)"),
        "anchor": Answer(f"{len(alike)} models, errors of at most {worst:.2e}, all greedy tokens equal",
                         "python3 bench/experiments.py --section coverage --section families",
                         "not bit for bit: sums are added up in another order than PyTorch's")
        if alike else missing("families/llama-gqa")}


# ---- roofline ------------------------------------------------------------------------------------------------------

AS_PUBLISHED = "time, GB/s, share of the data sheet's peak, share of a plain read in the same run"
COUNTED = "; published bytes count a table of the embedding beside the head, of which a step reads a row"
ABOVE = "; a plain read is no limit: a step can be faster"


SPREAD = "p10 and p90 over the launches of a run; rows hold no standard deviation"
NO_TASKS = "; no row counts its tasks ([of other shapes](#e1-coverage-the-published-models))"


def under_the_roof(gpu, row):
    peak, read = row["gbs"] / PEAK[gpu], row["gbs"] / row["read_gbs"]
    return f"{NAMES[gpu]}: {us(row['latency_us']['median'])}, {row['gbs']:,.0f} GB/s, {100 * peak:.1f} %, " \
           f"{100 * read:.1f} %"


def roofline(r):
    small = {d: f"roofline/llama-2048h-4l-{d}-seed1-0" for d in ("bf16", "fp32")}
    one = {"bf16": "bench/llama-3.2-1b-bf16-seed1-0", "fp32": "roofline/llama-3.2-1b-fp32-seed1-0"}
    smol = "roofline/smollm2-135m-fp32-seed1-0"
    at = {"small-fp32": small["fp32"], "small-bf16": small["bf16"], "b1-fp32": one["fp32"], "b1-bf16": one["bf16"]}
    out = {}
    for key, row_id in at.items():
        out[f"h100-{key}"] = shown(on_each(r, row_id, under_the_roof), row_id, AS_PUBLISHED + COUNTED + ABOVE)
        out[f"spread-h100-{key}"] = shown(on_each(r, row_id, spread), row_id, SPREAD)
        out |= {k: Answer("", "", NO_GPU.format("A100")) for k in (f"a100-{key}", f"spread-a100-{key}")}
    no_5090 = NO_GPU.format("RTX 5090")
    out |= {key: Answer("", "", f"{no_5090}, and no row is of this shape") for key in ("8-5090-1024h", "8-5090-8l")}
    out |= {"peak-5090": Answer("", "", no_5090),
            "tuned-autotune": Answer("", "", f"{no_5090}, and no search was of this model")}
    out |= {key: Answer("", "", NO_GPU.format("A100")) for key in (
        "8-a100-fp32", "8-a100-bf16", "8-a100-1b", "8-a100-smol", "peak-a100")}
    counted = [(tasks, r.row("cpu", "coverage/smollm2-135m"))]
    weights = lambda gpu, row: f"{NAMES[gpu]}: {row['bytes_per_token'] / 1e6:,.1f} MB a token, " \
        + under_the_roof(gpu, row).partition(": ")[2]
    for key, row_id in (("h100-fp32", small["fp32"]), ("h100-1b", one["bf16"]), ("5090-4l", small["fp32"])):
        out[f"8-{key}"] = shown(on_each(r, row_id, weights), row_id, (f"{no_5090}; " if "5090" in key else "")
                                + AS_PUBLISHED + COUNTED + NO_TASKS)
    out["8-h100-smol"] = shown(on_each(r, smol, weights) + counted, smol, AS_PUBLISHED + "; both count the table of "
                               "the embedding, which is the head too")
    other = f"{no_5090}; shares of a plain read in the same run, and of the data sheet's peak"
    out["tuned"] = shown(on_each(r, small["bf16"], lambda gpu, row: f"{NAMES[gpu]}: {row['gbs']:,.0f} GB/s, "
                                 f"{100 * row['gbs'] / row['read_gbs']:.0f} %, {100 * row['gbs'] / PEAK[gpu]:.0f} %"),
                         small["bf16"], other)
    library, read, timed = "compare/llama-2048h-4l-bf16-seed1-0", "bench/llama-3.1-8b-bf16-seed1-0", \
        "compare/llama-3.2-1b-bf16-seed1-128"
    alone = f"{library}-products"
    out["cublas"] = shown(on_each(r, alone, lambda gpu, row: rate_of(gpu, row, "products"), what="products, ") +
                          on_each(r, library, lambda gpu, row: rate_of(gpu, row, "eager"),
                                  what="transformers' step, "),
                          library, f"{other}; the matrix-vector products alone in a CUDA graph, and transformers' "
                          "step, which is more than cuBLAS")
    out["peak-h100"] = shown(on_each(r, read, lambda gpu, row: f"{NAMES[gpu]}: {row['read_gbs']:,.0f} GB/s of "
                                     f"{PEAK[gpu]:,}"), read, "a plain read of the weights, in place of a copy")
    out["clocks"] = shown(on_each(r, timed, clocks), timed, "read while kernels run, never set; all are in the rows")
    out["power"] = shown(on_each(r, one["bf16"], power), one["bf16"], "least and most while the 1B decodes in bf16, of "
                         "the highest allowed; none is read when idle")
    out["idle"] = Answer("", "", "clocks are read while kernels run, and not beside them")
    out["unpinned"] = Answer("", "", "not repeated: launches follow one another, and the clock of every row of the "
                             "roofline is the highest one")
    out["spread-earlier"] = Answer("", "", f"{NO_GPU.format('A100')}; rows hold no standard deviation")
    return out


def spread(gpu, row):
    return f"{NAMES[gpu]}: " + ", ".join(us(row["latency_us"][k]) for k in ("p10", "p90"))


def tasks(row):
    return f"{row['tasks']} tasks in the published format, {row['h200_tasks']} for an H200"


def rate_of(gpu, row, engine):
    e = row["engines"].get(engine, {})
    return f"{NAMES[gpu]}: {e['gbs']:,.0f} GB/s, {100 * e['gbs'] / row['read_gbs']:.0f} %" if "gbs" in e else ""


def clocks(gpu, row):
    read = row.get("machine", {}).get("clocks")
    if not read:
        return ""
    low, high = read["sm_mhz"]["min"], read["sm_mhz"]["max"]
    return f"{NAMES[gpu]}: {low if low == high else f'{low} to {high}'} MHz of {row['machine']['max_sm_mhz']}"


def power(gpu, row):
    read = row["machine"]["clocks"]["power_w"]
    return f"{NAMES[gpu]}: {read['min']:.0f} to {read['max']:.0f} W of {row['machine']['power_limit_w']}"


# ---- precision -----------------------------------------------------------------------------------------------------

# Rows of section compare: the beginning of their id, their position and what they are of.
SMALL = (("compare/llama-2048h-4l-bf16-seed1", 0, "small, at 0"),)
MODELS = (("compare/llama-3.2-1b-bf16-seed1", 128, "1B, at 128"),
          ("compare/llama-3.1-8b-bf16-seed1", 128, "8B, at 128"))
SHORT = {"int8": "int8", "int4": "int4-g128-sym", "": ""}


def id_of(start, position, weights):
    return "-".join(filter(None, (start, SHORT[weights], str(position))))


def compared(r, models, weights, engine, rounds=False):
    """How many times amkc's time an engine takes, of each model and GPU that has a row, and where rounds is set the
    least and the most of its rounds. Of quantised matrices the eager step is in bf16, of the row in bf16 where it has
    none of its own, and the compiled step stands beside it."""
    return [((lambda row, gpu=gpu, m=m: ratio(r, gpu, row, m, weights, engine, rounds)),
             r.row(gpu, id_of(*m[:2], weights))) for gpu in GPUS for m in models]


def ratio(r, gpu, row, model, weights, engine, rounds):
    start, position, what = model
    e, note = row["engines"].get(engine, {}), ""
    times = e.get("times_amkc")
    if times is None and weights and engine == "eager":
        plain = r.row(gpu, id_of(start, position, ""))
        if plain:
            times, note = plain["engines"]["eager"]["us"]["median"] / row["engines"]["amkc"]["us"]["median"], \
                " (of two rows)"
    elif times is not None and rounds and "round_us" in e:
        each = [theirs / ours for theirs, ours in zip(e["round_us"], row["engines"]["amkc"]["round_us"])]
        note = f" ({min(each):.2f} to {max(each):.2f})"
    compiled = row["engines"].get("compile", {}).get("times_amkc")
    if compiled and weights and engine == "eager":
        note += f", {compiled:.2f}× through torch.compile in {weights}"
    whose = "transformers' step " if engine in ("ops", "eager") else ""
    return "" if times is None else f"{NAMES[gpu]}, {what}: {whose}{times:.2f}×{note}"
