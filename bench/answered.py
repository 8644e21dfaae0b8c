"""The parts of docs/experiments.md that answer published figures one by one: a table for each group of
bench/figures.py.

Needs the standard library alone, and must not know how a row was made.
"""

import textwrap

import answers
import answers_looping
import answers_search
import answers_soundness
import answers_speed
import drawings
import figures
from report import table

ANSWERS = {"errors": answers.errors, "quality": answers.quality,
           "rejections": answers_soundness.rejections, "search": answers_search.search,
           "roofline": answers.roofline, "precision": answers_speed.precision, "baselines": answers_speed.baselines,
           "intensity": answers_looping.intensity, "looping": answers_looping.looping}
INTRO = """Each published figure has a row from here on, with ours, or the reason why there is none. A figure that
could be measured and is not yet says so in bold, with the command that makes it; where one GPU alone is missing, its
rows are listed in [results](results/README.md) as never made. GPUs, models and batches are named where they are not the
published ones: such numbers stand side by side, and are not compared."""
TITLES = {
    "errors": ("E1: errors on GPUs", "Published: Table 3, a step of each."),
    "quality": ("E1: perplexity, and long greedy runs", "Published: Section 5, and the account of E2. Formats beside "
                "fp32 are [below](#perplexity-by-format)."),
    "rejections": ("E2: why, and how long", "Published: the account of E2, by reasons that were taken from the texts "
                   "of errors. Ours are codes of the first error of a program ([validator.md](validator.md)), of the "
                   "population rebuilt (above), whose random graphs are others."),
    "search": ("E3: search", "Published: the account of E3, figures 4 and 5, and Section 5."),
    "roofline": ("E4: the roofline", "Published: tables 7 and 8, Figure 3, Section 5 and the account of E4. Every time "
                 "counts only if the kernel agreed with the plain kernels of its build in the same run."),
    "precision": ("Precision and GPUs", "Published: tables 6 and 10, Figure 6, and the limitations of Section 6. "
                  "amkc and PyTorch ran interleaved, on the same random weights."),
    "baselines": ("Other engines, and ablations", "Published: tables 11 and 9."),
    "intensity": ("Kernel looping: what a token reads and computes", "Published: Table 1, in units of 2^30 bytes."),
    "looping": ("Kernel looping: boundaries between layers", "Published: figures 1, 4, 5 and 8 to 12, on 2 to 8 H100 "
                "with TensorRT-LLM and on 8 and 16 sockets of SN40L. Its ways are a launch per operation, a launch per "
                "layer, and one loop. So are ours, of the same bodies: a kernel launched for every stage (six a "
                "layer), one for every layer, queued ahead so that the GPU does not wait for the host, and one loop "
                "([bench.md](bench.md#a-step-in-parts)). Launches are timed of one sequence. Of several sequences, and "
                "in the rows of section barriers, a barrier of all SMs at the end of each layer, with the ring drained "
                "and inside one launch, stands in their place; most rows of one sequence have both."),
}


def wrapped(text):
    return textwrap.fill(text, 119, break_long_words=False, break_on_hyphens=False)


def part(group, results):
    """The lines of a group: its title, its table, and what is drawn of it."""
    title, text = TITLES[group]
    given = ANSWERS[group](results)
    lines = []
    for f in figures.GROUPS[group]:
        a = given[f.key]
        ours = a.ours or ("**not measured yet**" if a.why.startswith("not measured yet") else "none")
        lines.append([f.place, f.what, f.says, ours, f"`{a.command}`" if a.command else "",
                      a.why.removeprefix("not measured yet").lstrip("; :")])
    out = [f"## {title}", "", wrapped(text), ""]
    out += table(["place", "of", "published", "ours", "command", "where they cannot be compared, and why"], lines)
    for drawing in drawings.of(group):
        if drawing.path.exists():
            out += ["", f"![{drawing.shows}](img/{drawing.path.name})"]
    return out + [""]
