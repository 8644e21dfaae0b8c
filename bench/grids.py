"""Tables of docs/experiments.md that put many rows beside one another: every engine that was compared, and the search
and the ablations of the prior art.

Needs the standard library alone, and must not know how a row was made.
"""

import answers_looping
import figures
from answered import wrapped
from answers import GPUS, MODELS, NAMES, SHORT, SMALL, id_of
from answers_search import E3, PREDICTED
from answers_speed import LONG
from defaults import DEFAULTS, OVER, earlier
from report import table

ENGINES = """Every comparison with PyTorch that was made, by position: the time of a token, and how many times amkc's it
is, the median of the rounds' ratios; larger is faster. A row is one run, its engines interleaved on the same random
weights, batch 1; the step that is launched one by one takes as long as the host needs for it. PyTorch's are
transformers' step launched one by one, the same in a CUDA graph, and through torch.compile; none of these is cuBLAS
alone, as the matrix-vector products of a step are, with nothing else, in a CUDA graph. With matrices in int8 or int4
the compiled step multiplies by PyTorch's own quantised matrices, and the one in a graph has its matrices in bf16.
Compiled in bf16 it can be faster than with quantised matrices: the line in bf16 has that time. {marks}"""
BOUNDARIES = """The same bodies as a loop, with a barrier of all SMs at the end of each layer, and launched for every
layer and for every stage: how many times the time of the loop. Waiting is the share of the time in which nothing is
streamed: how much longer the time is than the stream's. *Apart* are rows whose builds do not fit one GPU together:
their turns were taken one after the other, each in a process of its own. *Withdrawn* are launches of which each walked
all layers to find its own, so that their times were those of the walk; they now do their own alone. {marks}"""
EARLIER = "An asterisk marks rows that were measured with earlier defaults of amkc, which can differ there: {}."
SIDE_BY_SIDE = """The published search (E3) and ablations (Table 9), theirs and ours, in one table. A gain is the time
without over the time with: below 1 it is a loss. *Kept* is how many candidates a search has kept; an ablation keeps
none. Times of E3 are predictions, each by its own cost model for an RTX 5090 and over its own defaults; published
ablations ran on an RTX 5090. Ours name the GPU, the model and the position."""
FORMATS = tuple(SHORT)  # the names of id_of
KINDS = ("ops", "eager", "compile", "products")
WAYS = ("barriers", "launches for every layer", "launches for every stage")
# A published ablation, and the variant of section ablations that lacks the same.
ABLATIONS = {"9-coalescing": "async-copy-off", "9-tables": "one-token", "9-balance": "contiguous",
             "9-pipelining": "in-flight-1"}
SEARCHED = {"search-toy": "toy, 1 layer", "search-125m": "shape of 125M, 2 layers",
            "search-1b": "shape of 1B, 4 layers"}


def planned():
    """The ids of what the figures of precision want, and of what each is: position and format."""
    return {id_of(start, position, weights): (position, SHORT[weights].replace("-", ":"))
            for start, position, _ in SMALL + MODELS + LONG for weights in FORMATS}


def engines(r):
    lines, missing = [], []
    for gpu in GPUS:
        made = {row["id"]: row for row in r.rows(gpu, "compare")}
        every = {i: (row["position"], row.get("weights") or "") for i, row in made.items()}
        lines += [[NAMES[gpu] + mark(made[row_id]), model(row_id), weights or "bf16", f"{position:,}",
                   *compared(made[row_id]),
                   f"`{made[row_id]['command']}`"] for row_id, (position, weights) in in_order(every)]
        wanted = in_order({i: what for i, what in planned().items() if i not in made})
        missing += not_made(gpu, "compare", [(f"{model(i)} at {position:,} in", weights or "bf16")
                                             for i, (position, weights) in wanted])
    titles = ("GPU", "model", "format", "position", "amkc", "transformers, one by one", "transformers, in a CUDA graph",
              "transformers, torch.compile", "products alone, cuBLAS in a CUDA graph", "command")
    return ["## Every engine, format and position", "", wrapped(ENGINES.format(marks=marks(lines))), "",
            *([*table(titles, lines), ""] if lines else []), *missing]


def mark(row):
    return " \\*" if earlier(row) else ""


def marks(lines):
    """What the marks of some lines mean, if there are any."""
    marked = any(line[0].endswith("*") for line in lines)
    return EARLIER.format("; ".join(OVER[:DEFAULTS - 1])) if marked else ""


def boundaries(r):
    lines, missing = [], []
    for gpu in GPUS:
        made = {row["id"] for row in r.rows(gpu, "boundaries")}
        missing += not_made(gpu, "boundaries", [(f"{what}, at", f"{position:,}") for i, (what, position)
                                                in answers_looping.planned().items() if i not in made])
        for what, row in answers_looping.boundaries(r, gpu):
            ways, waiting = answers_looping.ways(row), answers_looping.waiting
            model, batch, position = what.split(", ", 2)
            lines.append([NAMES[gpu] + mark(row), model, batch.removeprefix("batch "), position.removeprefix("at "),
                          f"{row['loop_us']:,.1f} µs",
                          *(f"{ways[way] / row['loop_us']:.3f}×" if way in ways else gone(row) for way in WAYS),
                          *(f"{100 * waiting(row, us):.1f} %" if us else "" for us in
                            (row["loop_us"], *map(ways.get, WAYS))),
                          "" if row.get("interleaved", True) else "apart", limits(row), f"`{row['command']}`"])
    titles = ["GPU", "model", "batch", "position", "loop", *WAYS,
              *(f"waiting: {way}" for way in ("loop", *WAYS)), "turns", "limited by", "command"]
    return ["## Boundaries, row by row", "", wrapped(BOUNDARIES.format(marks=marks(lines))), "",
            *([*table(titles, lines), ""] if lines else []), *missing]


def gone(row):
    """What stands in the place of a time that a row does not have, or no longer."""
    return "withdrawn" if answers_looping.withdrawn(row) else ""


def limits(row):
    """What the driver says has held the clock below its highest."""
    return ", ".join(row.get("machine", {}).get("clocks", {}).get("limited_by", ()))


def in_order(rows):
    return sorted(rows.items(), key=lambda x: (model(x[0]), x[1][0], order(x[1][1])))


def not_made(gpu, section, pairs):
    """What is planned for a GPU and has no row, as a paragraph. Those that begin alike stand together."""
    ends = {}
    for start, end in pairs:
        ends.setdefault(start, []).append(end)
    if not ends:
        return []
    return [wrapped(f"Planned and not measured yet on an {NAMES[gpu]}: "
                    + "; ".join(f"{start} {', '.join(of)}" for start, of in ends.items())
                    + f". `python3 bench/results.py --target {gpu} --only '{section}/*'` makes them."), ""]


def order(weights):
    return [not weights, weights.startswith("int8"), True].index(True), weights


def model(row_id):
    return row_id.removeprefix("compare/").partition("-bf16-")[0]


def compared(row):
    cells = [f"{row['engines']['amkc']['us']['median']:,.1f} µs"]
    for kind in KINDS:
        e = row["engines"].get(kind, {})
        cells.append(f"{e['us']['median']:,.1f} µs, {e['times_amkc']:.2f}×" if "times_amkc" in e else
                     "" if kind == "products" and not e else "not run")
    return cells


def side_by_side(r):
    says = {f.key: f for f in figures.figures()}
    kept = says["search-kept"].says.split(", ")
    lines = []
    for (key, what), theirs in zip(SEARCHED.items(), kept):
        row = r.searches.get(E3[key])
        ours = [f"{row['default_us']:.2f} to {row['best_us']:.2f} µs, {row['gain']:.3f}×",
                f"{row['kept']} of {row['candidates']}", f"`{PREDICTED}`"] if row else \
            ["**not predicted yet**", "", f"`{PREDICTED}`"]
        lines.append(["E3", what, says[key].says, f"{theirs} of 60", *ours])
    for key, variant in ABLATIONS.items():
        rows = [(gpu, row) for gpu in GPUS for row in r.rows(gpu, "ablations") if row["variant"] == variant]
        if not rows:
            lines.append(["Table 9", says[key].what, says[key].says, "", "**not measured yet**", "", ""])
        for gpu, row in rows:
            lines.append(["Table 9", says[key].what, says[key].says, "",
                          f"{NAMES[gpu]}, {row['model']}, at {row['position']:,}: {row['us']:,.1f} to "
                          f"{row['default_us']:,.1f} µs, {row['ratio']:.2f}×; without: {row['what']}", "",
                          f"`{row['command']}`"])
    titles = ("place", "of", "published", "kept", "ours", "kept", "command")
    return ["## Search and ablations, side by side", "", wrapped(SIDE_BY_SIDE), "", *table(titles, lines), ""]
