"""BENCHMARKS.md: what the rows of docs/results say about speed, against what was aimed for.

Needs the standard library alone, and must not know how a row was measured. A number that is not there is shown as not
measured.
"""

from collections import Counter
from pathlib import Path

from defaults import DEFAULTS, OVER, earlier
from report import REFERENCE, fixed, outcome, percent, plain, scaled, short, span, stores, table

INTRO = """# Benchmarks

Written by `bench/results.py` from the rows in [docs/results](docs/results/README.md); do not edit. Each row was made by
the command beside it, and names by letter the amkc that made its build, and the software under it. A letter is no
machine: rows were made on several of a kind, which differ by 2 to 3 %, and what is compared ran interleaved on one.
All are of one sequence in bf16 with random weights, on one GPU; matrices are quantised where a row says so.

A latency is that of a full step: embedding, all layers, attention over the cache, the output matrix, argmax, the token
fed back. It counts only if the kernel agreed with the plain kernels of its build in the same run. The ceiling is a
kernel of the same build that streams the same bytes (the weights and cache rows that a step reads) through the same
ring and waits for nothing; their launches are interleaved. The plain read is a kernel that does nothing but load the
weights; its bandwidth stands beside the ceiling, so that the ceiling can be judged as well. Where a figure stays short
of its target, the ablations below say where time goes, and [docs/performance.md](docs/performance.md) and
[docs/negative-results.md](docs/negative-results.md) what was tried.
"""
LEFT_OUT = """## What the probes left out and the product does

The targets come from probes: kernels written by hand to find out what the design can do, before there was a compiler.
They had the stream of weights, the exchanges, the norms' 1/rms and, in one of them, attention over a cache that streams
through the ring. What they left out is in every row here:

- **RoPE**: the probes used q and k as they came out of the product with the weights. The kernel computes sines and
  cosines once per step, and in every layer rotates q and k between the sums of qkv and what the attention units wait
  for.
- **Append of the cache row**: nobody wrote the cache that the probe read. The kernel puts each step's k and v into it,
  in the order of tensor core fragments, and the next step's stream may read those bytes only after an acquire; a step
  therefore ends in a join of all SMs.
- **Ragged blocks**: the probe's context was a fixed number of whole blocks, the same for every split, and its columns a
  multiple of 1024. The kernel takes any position and any size: a last block that is partly rows to come, splits that
  have a block more than others, and a launch whose position moves from step to step.
- **Norm weights and residual**: the probes' norms had no weights, and what a stage put out was the next one's input.
  The kernel multiplies by the weights, and carries the residual stream in fp32 beside the exchanged values.
- **The token**: every step of the probes began with the same vector, and their SMs exchanged the largest logit. The
  kernel exchanges its index too, and begins the next step with that row of the embedding.
"""
# Shares of the ceiling that were aimed for on the reference, by model and position; a text where none was. The tokens
# of a launch from 32,752 end with 32,768 rows.
CONTEXTS = {128: "128", 8192: "8,192", 16368: "16,384", 32752: "32,768"}
SHARES = {"llama-3.2-1b": {128: 0.94, 8192: 0.88, 32752: 0.90}, "llama-3.1-8b": {128: 0.95, 8192: 0.91, 32752: 0.92},
          "qwen3-0.6b-as-llama": {128: 0.77, 8192: 0.73, 32752: 0.83},
          "smollm2-135m": {128: "none; 200 µs would be remarkable"}, "qwen3-0.6b": {128: "none"},
          "qwen3-8b": {128: 0.95}, "qwen2.5-7b": {128: 0.95}, "mistral-7b": {128: 0.95, 16368: "none"}}
# How many times the kernel's time PyTorch's step was to take there at context 128.
SPEEDUPS = {"llama-3.2-1b": {"eager": 2.5, "compile": 1.8}, "llama-3.1-8b": {"eager": 1.4, "compile": 1.3}}
ENGINES = {"amkc": "amkc", "ops": "transformers' step, one launch after another",
           "eager": "transformers' step in a CUDA graph",
           "compile": "transformers' step through torch.compile, in a CUDA graph",
           "products": "its matrix-vector products alone, by cuBLAS in a CUDA graph"}
QUANTISED = "compare, quantised"  # the part of the rows of compare whose matrices are
PARTS = {"contexts": "Share of the ceiling", "compare": "PyTorch", QUANTISED: "PyTorch, quantised matrices",
         "ablations": "What each feature is worth", "soak": "Eight minutes of continuous decoding"}


def render(results, path):
    """Writes BENCHMARKS.md for the JSON files of a directory, and returns its path."""
    path = Path(path)
    path.write_text(text(results), encoding="utf-8")
    return path


def text(results):
    out, explained = [INTRO], {}
    for name, store in stores(results):
        rows = [r for r in store.ordered() if part_of(r) in PARTS]
        out += [f"## {name}", ""] + machines(store, rows)
        if (n := sum(map(earlier, rows))):
            out += ["", f"{n} of {len(rows)} rows were measured with earlier defaults, which can differ there: "
                    f"{'; '.join(OVER[:DEFAULTS - 1])}."]
        if name != REFERENCE:
            out += ["", f"No targets were set for this GPU; those above are of the {REFERENCE}."]
        missing = []
        for part, show in (("contexts", ceiling), ("compare", pytorch), (QUANTISED, quantised),
                           ("ablations", ablations), ("soak", soak)):
            own = [r for r in rows if part_of(r) == part]
            if not own and name != REFERENCE:
                missing.append(PARTS[part])
                continue
            first = explained.setdefault(part, name)
            out += ["", f"### {PARTS[part]}", ""] + show(own, aimed=name == REFERENCE,
                                                         explain=None if first == name else f"As for {first}, above.")
        if missing:
            out += ["", f"Not measured on this GPU: {'; '.join(missing)}."]
        out.append("")
    return "\n".join(out + [LEFT_OUT])


def part_of(row):
    return QUANTISED if row["section"] == "compare" and row.get("weights") else row["section"]


def without(titles, lines, *left_out):
    """A table less some of its columns."""
    keep = [i for i, title in enumerate(titles) if title not in left_out]
    return table([titles[i] for i in keep], [[line[i] for i in keep] for line in lines])


def machines(store, rows):
    used = {r["environment"] for r in rows}
    chosen = {letter: e for letter, e in store.environments.items() if letter in used}
    facts = sorted({key for e in chosen.values() for key in e})
    return table(["on"] + facts, [[letter] + [e.get(f, "") for f in facts]
                                  for letter, e in chosen.items()]) if chosen else ["Nothing was measured yet."]


def met(value, target, shown):
    """Whether a figure reached its target, in words; it is compared unrounded."""
    if target is None:
        return ""
    return "yes" if value >= target else f"**no**, short by {shown(target - value)}"


def points(x):
    return f"{100 * x:.2g} points"


def made(row):
    return [row["environment"], f"`{row['command']}`"]


def ceiling(rows, aimed, explain):
    titles = ["shape", "context", "µs per token", "p10 to p90", "ceiling, µs", "share of ceiling", "target", "met",
              "GB/s", "plain read, GB/s", "share of plain read", "on", "command"]
    found = {(r["model"], r["position"]): r for r in rows if "position" in r}
    lines = []
    for model, targets in SHARES.items():
        for position, target in targets.items():
            r = found.get((model, position))
            aim, target = (target, None) if isinstance(target, str) else (f"≥ {100 * target:.0f} %", target)
            if not r or not r["passed"]:
                lines.append([model, CONTEXTS[position], outcome(r) if r else "not measured", "", "", "", aim, "", "",
                              "", ""] + (made(r) if r else ["", ""]))
                continue
            share, read = r["share_of_ceiling"], r.get("read_gbs")
            lines.append([model, CONTEXTS[position], fixed(r["latency_us"]["median"], 1), span(r["latency_us"]),
                          fixed(r["ceiling_us"]["median"], 1),
                          percent(share), aim, met(share, target, points), fixed(r["gbs"], 0), fixed(read, 0),
                          percent(r["gbs"] / read if read else None)] + made(r))
    note = ("Context 32,768 is the rows after the last of 16 tokens from position 32,752 on. The stream of a small "
            "model gives way to its exchanges, and it does so in the ceiling kernel of the build too, which that makes "
            "slower; the plain read depends on no build. [docs/performance.md](docs/performance.md) has more of this.")
    left_out = () if aimed else ("target", "met")
    return without(titles, lines, *left_out) + ([] if explain else ["", note])


def pytorch(rows, aimed, explain):
    out = [explain or
           "transformers' LlamaForCausalLM with the same weights and a static cache of the context's length, one "
           "decode step captured in a CUDA graph, argmax and the next position inside; eager with the faster of "
           "transformers' attentions, and torch.compile in mode max-autotune. Where there is a row for it, the eager "
           "step also runs without a graph, as the host launches it. None of these is cuBLAS alone: that is a row "
           "of the matrix-vector products of the step and nothing else, one after the other in a CUDA graph, in "
           "the fastest of four forms (apart, or q, k, v and gate, up together; by torch.mm or torch.mv), each "
           "product held to a plain one in fp32. All run interleaved, by rounds; ratios are "
           "medians of the rounds' ratios. Errors are those of the logits at the first 144 positions, against "
           "transformers in fp32.", ""]
    titles = ["shape", "context", "", "µs per token", "p10 to p90", "times amkc's", "target", "met", "share of ceiling",
              "RMS error", "max error", "on", "command"]
    lines = []
    for r in rows:
        for name, label in ENGINES.items():
            e = r.get("engines", {}).get(name)
            if e is None:
                continue
            if e.get("attention"):
                label += f", attention {e['attention']}"
            target = SPEEDUPS.get(r["model"], {}).get(name) if r.get("position") == 128 else None
            aim = f"≥ {target:g}" if target else ""
            errors = [short(e.get("rms_error")), short(e.get("max_error"))]
            if "times_amkc" not in e:
                lines.append([r["model"], plain(r.get("position")), label,
                              "not run: " + e["not_run"] if "not_run" in e else outcome(r), "", "", aim, "", ""] +
                             errors + made(r))
                continue
            times = e["times_amkc"]
            lines.append([r["model"], plain(r["position"]), label, fixed(e["us"]["median"], 1), span(e["us"]),
                          fixed(times, 2), aim,
                          met(times, target, lambda x: fixed(x, 2)), percent(e["share_of_ceiling"])] + errors + made(r))
        if r["passed"] is False or not r.get("engines"):
            lines.append([r["model"], plain(r.get("position")), outcome(r)] + [""] * 8 + made(r))
    left_out = () if aimed else ("target", "met")
    return out + (without(titles, lines, *left_out) + nearer(rows) if lines else ["Not measured."])


def quantised(rows, aimed, explain):
    out = [explain or
           "The same with quantised matrices, against torch.compile in a form that it is fast with, and, where "
           "there is a row for it, against transformers' step in a CUDA graph with matrices in bf16. Each "
           "quantises the same weights in its own way, in forms with nearly as many bits; a row says which. int8 "
           "is multiplied by what torch.compile makes of a product with widened bytes, int4 by PyTorch's own "
           "kernel, and its lm_head in int8, as amkc's is; q, k and v are one matrix for PyTorch too, and so are "
           "gate and up. As their values differ, PyTorch's logits are held to transformers in fp32 with "
           "PyTorch's values, and amkc's to the plain kernels of its build in the same run. Bytes are those of "
           "the weights, scales and zeros that a step reads, and of K and V of the positions before; bits are of "
           "all these weights together.", ""]
    titles = ["shape", "context", "`--weights`", "", "µs per token", "p10 to p90", "times amkc's", "MB per token",
              "GB/s", "bits of a weight", "share of ceiling", "RMS error", "on", "command"]
    lines = []
    for r in rows:
        first = [r["model"], plain(r.get("position")), r["weights"]]
        for name, e in r.get("engines", {}).items():
            sizes = [fixed(scaled(e.get("bytes_per_token"), 1e-6), 1), fixed(e.get("gbs"), 0),
                     fixed(e.get("bits_per_weight"))]
            label = f"{ENGINES[name]}: {e['form']}" if e.get("form") else ENGINES[name]
            if "times_amkc" in e:
                times = [fixed(e["us"]["median"], 1), span(e["us"]), fixed(e["times_amkc"], 2)]
            else:
                times = ["not run: " + e["not_run"] if "not_run" in e else outcome(r), "", ""]
            lines.append(first + [label] + times + sizes +
                         [percent(e.get("share_of_ceiling")), short(e.get("rms_error"))] + made(r))
        if r["passed"] is False:
            lines.append(first + [outcome(r)] + [""] * 8 + made(r))
    return out + (table(titles, lines) if lines else ["Not measured."])


def nearer(rows):
    """Says which of PyTorch's steps have the smaller errors."""
    found = []
    for r in rows:
        errors = {name: e["rms_error"] for name, e in r.get("engines", {}).items() if e.get("rms_error")}
        found += [f"{ENGINES[name]}, {r['model']} at {r['position']:,}" for name in errors if "amkc" in errors
                  and errors[name] < errors["amkc"]]
    return ["", f"Nearer to fp32 than amkc, by the RMS error: {'; '.join(found)}."] if found else []


def ablations(rows, aimed, explain):
    out = [explain] if explain else [
           "Builds that lack one feature or have another value of one knob, interleaved with the kernel as amkc makes "
           "it. A cell is the time of a token in µs, and in brackets its ratio to that of the kernel as amkc makes it, "
           "above 1 where the feature helps, with the spread of the rounds. Rows that are what amkc makes of a model "
           "anyway show how much two builds of the same kernel differ, which is more than the spread: a ratio as near "
           "to 1 as theirs shows nothing. The cycles between two requests to L2 follow the stock, and with them builds "
           "that have another stock or none. Four things have no row, because no kernel is without them: weights "
           "packed in the order of tensor core fragments, stages that are fused (five per layer), the cache's way "
           "through the ring, and argmax on the GPU. [docs/results](docs/results/README.md) names rows that were "
           "not made.",
           "",
           "A chunk is 16 KB of weights or cache on their way into an SM's ring of slots in shared memory; run-ahead "
           "asks for chunks into L2 before the ring has room. An exchange hands a vector from all SMs to all, by words "
           "that carry their own flag or by counters. A split is the part of a context that one SM attends to."]
    for model in dict.fromkeys(r["model"] for r in rows):
        own = [r for r in rows if r["model"] == model]
        positions = sorted({r["position"] for r in own if "position" in r})
        what = dict.fromkeys(r["what"] for r in own if "what" in r)
        cells = {(r["what"], r["position"]): f"{r['us']:.1f} ({r['ratio']:.3f}, spread {r['spread']:.3f})"
                 if r["passed"] else outcome(r)
                 for r in own if "what" in r}
        base = ["as amkc makes it"] + [", ".join(sorted({fixed(r["default_us"], 1) for r in own
                                                         if r["passed"] and r["position"] == p})) for p in positions]
        most = Counter(r["environment"] for r in own).most_common(1)[0][0]
        elsewhere = {r["what"]: f" (on {r['environment']})" for r in own if "what" in r and r["environment"] != most}
        where = f"on {most} where it does not say otherwise" if elsewhere else f"on {most}"
        lines = [[w + elsewhere.get(w, "")] + [cells.get((w, p), "not measured") for p in positions] for w in what]
        out += ["", f"**{model}**, {where}; `python3 bench/results.py --only 'ablations/{model}-*'`", ""]
        out += table(["build"] + [f"at {p}" for p in positions], [base] + lines)
        out += [f"\n{r['id']}: {outcome(r)}" for r in own if "what" not in r]
    return out + ([] if rows else ["", "Not measured."])


def soak(rows, aimed, explain):
    out = [explain or
           "From position 0 to the end of the context again and again in one session. Every pass must give the tokens "
           "of the first, and two teacher-forced ones at the end the same logits to the bit.", ""]
    titles = ["shape", "tokens", "passes", "seconds", "µs per token: first tenth of the passes", "last tenth",
              "longest pass", "result", "on", "command"]
    lines = [[r["model"], plain(r.get("free")), plain(r.get("passes")), fixed(r.get("seconds"), 0)] +
             [fixed(r.get("latency_us", {}).get(k), 1) for k in ("first_tenth", "last_tenth", "longest")] + [outcome(r)]
             + made(r)
             for r in rows]
    return out + (table(titles, lines) if lines else ["Not measured."])
