"""docs/experiments.md: what two papers have published on the left, ours on the right.

Needs the standard library alone, and must not know how a row was made.
"""

import textwrap
from pathlib import Path

import answered
import answers
import coverage
import grids
import published
from report import fixed, outcome, plain, table

HEAD = """# Experiments

Two papers describe what amkc set out to re-create: *AutoMegaKernel* (its paper, and the account of its experiments E1
to E4) and *Kernel Looping*. Their experiments are repeated here with amkc. Columns called **published** have the
figures of the papers, at the places that stand over each table; columns called **ours** have what the commands beside
them made, in full in [results/experiments.json](results/experiments.json) and, of GPUs, in
[results](results/README.md). Written by `bench/experiments.py` and `bench/results.py`; do not edit. `make everything`
makes all of it again ([CONTRIBUTING.md](../CONTRIBUTING.md)). Losses and null results are in the same tables as wins.
"""

MODELS = f"""Published: Table 4, and the table of all models in the account of E1; {published.GREEDY_PUBLISHED} greedy
tokens each. The left half of *ours* is the same program, lowered by amkc into the published format with tasks of
{coverage.TILE} rows: it has as many tasks, buffers and counters. The right half is what amkc makes for an H200 (132
SMs), all variants together, and proves for its kernel. Weights: the three published checkpoints are not at hand, so all
ten shapes have random weights, the same in transformers; their errors are those of other weights than the published
ones, and say only that ours are of that size too. On the CPU, fp32, as published."""

FAMILIES = """There is no published figure beside these: the paper has one family. A small model of each family that
amkc takes, most with random weights, against transformers, as above. The tasks of the published format are missing
where it cannot express the model. A number in brackets is how many tokens the model has room for."""

REFUSALS = """Published: the table of refused variants in the account of E1, and Section 6. Of these four amkc computes
three; under *ours* stands the model that has the feature, or what is said of it. What else amkc refuses, with the
reasons, is printed by `amkc models`; a configuration that it does not model is refused by the field
([models.md](models.md), [results/fields.md](results/fields.md))."""

SOUNDNESS = """Published: Table 5, the confusion matrix and the classes of false rejects in the account of E2, of 7,160
schedules. Ours is that population rebuilt from its description: 360 lowerings, 350 mutants of each class, 4,000 random
graphs. The mutants and graphs are others than the published ones, which are not at hand, so that counts of unsafe ones
differ by the draw; and the oracles differ: the published one runs counters and 96 orders, ours explores every order, of
large programs many, on memory that knows who wrote what, and sees the races of partial waits that the published one
cannot."""

RATES = """Published: the account of E2, 7,160 programs in memory, the wall clock of a CPU that is not named. Ours: a
second of processor time, garbage collection included. *From a file* is the bytes of JSON to the verdict, of the
lowerings and mutants; the random graphs have no file form, and programs in memory have been parsed before. {flat} of
the 7,160 have the form that `validate` judges; the others are refused when they are brought into it. The processors
differ, so that no ratio is given. Ours were made beside other work on the same two cores, which costs processor time
too. [validator.md](validator.md#how-fast-it-is) has 106,700 by the wall clock of two idle cores, of smaller
programs."""

FORMATS = """There is no published figure beside these. pycoder-5m on its own text, against transformers on the same
windows: the gap is to transformers in fp32. Greedy: tokens after 8 prompts that are those of amkc in fp32, of 64, the
mean and the fewest."""


def write(path, store, planned):
    path = Path(path)
    path.write_text(page(store, planned), encoding="utf-8")


def page(store, planned):
    out = [HEAD]
    for part in (coverage_part, families_part, refusals_part, soundness_part, rates_part):
        out += part(store.rows)
    results = answers.Results(store.path.parent, store)
    out += ["## Figure by figure", "", paragraph(answered.INTRO), ""]
    for group in answered.ANSWERS:
        out += answered.part(group, results)
        out += FURTHER.get(group, lambda _: [])(results)
    out += nothing_part()
    missing = [t.id for t in planned if t.id not in store.rows]
    if missing:
        out += ["## Rows that were not made", "",
                paragraph("Planned, and not made yet: " + ", ".join(f"`{i}`" for i in missing) + "."), ""]
    out += made_with(store)
    return "\n".join(out).rstrip() + "\n"


def paragraph(text):
    return textwrap.fill(" ".join(text.split()), 119, break_long_words=False, break_on_hyphens=False)


def command(row):
    return f"`{row['command']}`" if row else ""


def scientific(x):
    return "" if x is None else f"{x:.2e}"


def tokens(equal, n):
    return "" if n is None else "yes" if equal == n else f"{equal} of {n}"


def compared(row, n):
    """How many of n greedy tokens are those of transformers: chosen now, or as it has left them beside the model."""
    for equal, total in (("equal", "compared"), ("recorded_equal", "recorded")):
        if row.get(total) is not None and row[total] >= n:
            return tokens(min(row[equal], n), n)
    if row.get("compared") is None:
        return "not run"
    return f"{tokens(row['equal'], row['compared'])} ({row['compared']})"


def coverage_part(rows):
    out = ["## E1: coverage, the published models", "", paragraph(MODELS), ""]
    lines = []
    for c in published.COVERAGE:
        row = rows.get(f"coverage/{coverage.slug(c.name)}")
        ours = row or {}
        theirs = [c.parameters, c.layers, c.hidden, f"{c.heads}/{c.kv_heads}", c.tasks, c.buffers, c.counters, "OK",
                  c.error, "yes", c.generate]
        counts = [plain(ours.get(k)) for k in ("tasks", "buffers", "counters", "h200_tasks", "h200_counters")]
        equal = [compared(ours, n) if row else "" for n in (16, 64)]
        lines.append([c.name, *theirs, millions(ours), *counts, ours.get("validate", ""), scientific(ours.get("error")),
                      *equal, state(row), command(row)])
    theirs = ["parameters (M)", "layers", "hidden", "heads/kv", "tasks", "buffers", "counters", "validate", "error",
              "16 tokens", "= generate"]
    counts = ["parameters (M)", "tasks", "buffers", "counters", "tasks, H200", "counters, H200"]
    return out + table(["model", "published: " + theirs[0], *theirs[1:], "ours: " + counts[0], *counts[1:], "validate",
                        "error", "16 = generate", "64 = generate", "result", "command"], lines) + [""]


def millions(row):
    return fixed(row["parameters"] / 1e6, 2) if row.get("parameters") else ""


def state(row):
    return outcome(row) if row else "not made"


def families_part(rows):
    out = ["## E1: coverage, every family", "", paragraph(FAMILIES), ""]
    counts = ("tasks", "buffers", "counters", "h200_tasks")
    lines = [[row["id"].partition("/")[2], row.get("family", ""), millions(row), plain(row.get("layers")),
              plain(row.get("hidden")), heads(row), *(plain(row.get(k)) for k in counts), row.get("validate", ""),
              scientific(row.get("error")), compared(row, 16), compared(row, 64), state(row), command(row)]
             for row in rows.values() if row["section"] == "families"]
    return out + table(["model", "family", "parameters (M)", "layers", "hidden", "heads/kv", "tasks", "buffers",
                        "counters", "tasks, H200", "validate", "error", "16 = generate", "64 = generate", "result",
                        "command"], lines) + [""]


def heads(row):
    return f"{row['heads']}/{row['kv_heads']}" if row.get("heads") else ""


def refusals_part(rows):
    out = ["## E1: what is refused", "", paragraph(REFUSALS), ""]
    lines = []
    for v in (*published.REFUSALS, *others()):
        row = rows.get(f"families/{v.ours}") or rows.get(f"refusals/{v.ours}") or {}
        computed = "error" in row
        lines.append([v.name, v.outcome, row.get("refused", v.ours), scientific(row.get("error")),
                      compared(row, 16) if computed else "", compared(row, 64) if computed else "", state(row or None),
                      command(row)])
    return out + table(["variant", "published", "ours", "error", "16 = generate", "64 = generate", "result", "command"],
                       lines) + [""]


def others():
    """What amkc refuses of the models here and the paper does not speak of."""
    known = {v.ours for v in published.REFUSALS}
    return [published.Variant(name, "", name) for name in coverage.REFUSED if name not in known]


def soundness_part(rows):
    row = rows.get("soundness/population")
    classes = {r["class"]: r for r in (row or {}).get("classes", ())}
    out = ["## E2: soundness", "", paragraph(SOUNDNESS), ""]
    lines = []
    for u in published.UNSAFE:
        r = classes.get(u.name)
        lines.append([u.name, u.unsafe, u.rejected, u.false_accepts, u.strict,
                      *((r[k] for k in ("unsafe", "rejected", "false_accepts", "strict")) if r else [""] * 4)])
    columns = ["unsafe", "rejected", "false accepts", "rejected, seen safe"]
    out += table(["class, 350 each", *("published: " + c for c in columns), *("ours: " + c for c in columns)], lines)
    total = [sum(r[k] for r in classes.values()) for k in ("accepted", "false_accepts", "strict", "rejected")]
    ours = [total[0] - total[1], *total[1:]] if classes else [""] * 4
    names = ("accepted, safe", "accepted, unsafe: false accepts", "rejected, safe", "rejected, unsafe")
    out += ["", *table(["confusion matrix", "published", "ours"], [[n, f"{p:,}", thousands(o)] for n, p, o in
                                                                    zip(names, published.CONFUSION, ours)])]
    if classes:
        lowering, graphs = classes["lowering"], classes["dag"]
        all_of = {k: sum(r[k] for r in classes.values()) for k in ("unsafe", "ordered", "unread", "accepted", "seen")}
        out += ["", paragraph(
            f"Of the lowerings {lowering['accepted']} of {lowering['programs']} are accepted (published: "
            f"{published.LOWERINGS}). All 4,000 published random graphs were unsafe, as follows from the sums; of ours "
            f"{graphs['unsafe']:,} are, since most are well formed. Of our {all_of['unsafe']:,} unsafe programs "
            f"{all_of['ordered']:,} go wrong in some order of their tasks. The others are wrong whatever the order, "
            f"and none of theirs was run; {all_of['unread']:,} of those are refused by what reads a program for "
            f"`validate` and the oracles alike. Of the {all_of['accepted']:,} that are accepted every order of "
            f"{all_of['seen']:,} was seen.")]
    if row:
        out += ["", f"Result: {state(row)}, by {command(row)}."]
    return out + ["", "[results/soundness.md](results/soundness.md) has a million programs of all kinds.", ""]


def thousands(n):
    return f"{n:,}" if isinstance(n, int) else n


def rates_part(rows):
    row = rows.get("soundness/rates")
    found = (row or {}).get("per_second", {})
    out = ["## E2: schedules in a second", "",
           paragraph(RATES.format(flat=thousands((row or {}).get("flat") or "Most"))), ""]
    lines = [["validate, in the form that it judges", published.PER_SECOND, rate(found.get("flat"))],
             ["validate, in memory, brought into that form first", "not published", rate(found.get("memory"))],
             ["validate, from a file", "not published", rate(found.get("file"))],
             ["oracles that run programs", "not published", rate(found.get("simulate"))]]
    return out + table(["schedules per second", "published", "ours"], lines) + [
        "", f"Result: {state(row)}{', by ' + command(row) if row else ''}.", ""]


def rate(x):
    return "" if x is None else f"{x:,.0f}"


def formats_part(results):
    out = ["## Perplexity by format", "", paragraph(FORMATS), ""]
    lines = []
    for where, section, name in (("cpu", "perplexity", "reference VM"), ("h100", "quality", "H100"),
                                 ("h200", "quality", "H200")):
        for row in results.rows(where, section):
            form = row["id"].partition("pycoder-5m-")[2].rpartition("-")[0]
            gap = 100 * row["gap"] / row["transformers_fp32"]
            lines.append([form, name, row["tokens"], f"{row['perplexity']:.6f}", f"{row['transformers_fp32']:.6f}",
                          f"{gap:+.4f} %", f"{row['transformers']:.6f}", scientific(row["kl"]),
                          f"{100 * row['top1']:.1f} %", f"{row['greedy_mean']:.1f}, {row['greedy_least']}",
                          command(row)])
    return out + table(["format", "on", "predictions", "perplexity", "transformers, fp32", "gap",
                        "transformers, its dtype", "KL divergence from fp32", "same top token", "greedy", "command"],
                       lines) + [""]


# What stands after the table of a group of figures.
FURTHER = {"quality": formats_part, "precision": grids.engines, "baselines": grids.side_by_side,
           "looping": grids.boundaries}


def nothing_part():
    rest = "; ".join(f"{paper}: " + ", ".join(f"{k} ({v})" for k, v in places.items())
                     for paper, places in published.NO_FIGURES.items())
    return ["## Nothing to measure", "", paragraph(f"There is nothing to measure in {rest}."), ""]


def made_with(store):
    """What the rows that need no GPU were made with; those of GPUs say so in results/README.md."""
    used = {}
    for row in store.rows.values():
        sections = used.setdefault(row["environment"], {})
        sections[row["section"]] = sections.get(row["section"], 0) + 1
    if not used:
        return []
    facts = sorted({k for letter in used for k in store.environments[letter]})
    return ["## Rows without a GPU: made with", "", *table(["rows", *facts], [
        [", ".join(f"{n} of {section}" for section, n in of.items()),
         *(store.environments[letter].get(k, "") for k in facts)] for letter, of in sorted(used.items())])]
