#!/usr/bin/env python3
"""Draws what docs/experiments.md and docs/campaigns.md show of docs/results: docs/img/experiments-*.svg and
campaigns-regret.svg.

    python3 -m venv /tmp/draw && /tmp/draw/bin/pip install matplotlib numpy && /tmp/draw/bin/python bench/draw.py

It needs matplotlib, which nothing else here does. A drawing whose rows are missing is removed. The same rows and
version of matplotlib give the same bytes. Exit code: 0; 2 without matplotlib.
"""

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import answers
import campaignpage
import drawings
import experiments
import machine
import report

COLOURS = {"ops": "#bbbbbb", "eager": "#888888", "compile": "#4c72b0", "stream": "#888888", "loop": "#4c72b0",
           "barriers": "#c44e52", "launches for every layer": "#dd8452", "launches for every stage": "#8172b3"}
INCH_A_LINE, WIDTH = 0.28, 8.5
# A legend on the line of a panel's title, where it hides no curve.
ABOVE = {"frameon": False, "loc": "lower right", "bbox_to_anchor": (1, 1), "ncols": 2, "borderaxespad": 0}


def plot():
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams |= {"svg.fonttype": "none", "svg.hashsalt": "amkc", "font.size": 9, "font.family": "sans-serif",
                            "axes.spines.top": False, "axes.spines.right": False}
    from matplotlib import pyplot

    return pyplot


def precision(pyplot, data):
    """Bars beside one another, one for each engine."""
    engines = [e for e in drawings.ENGINES if any(e in d["times"] for d in data)]
    figure, axes = pyplot.subplots(figsize=(WIDTH, 1 + INCH_A_LINE * len(data) * (0.4 + 0.5 * len(engines))))
    height = 0.8 / len(engines)
    for i, e in enumerate(engines):
        there = [(n, d["times"][e]) for n, d in enumerate(data) if e in d["times"]]
        bars = axes.barh([n + i * height for n, _ in there], [t for _, t in there], height, color=COLOURS[e],
                         label=drawings.ENGINES[e])
        axes.bar_label(bars, [f"{t:.2f}" for _, t in there], padding=3, fontsize=8)
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set_yticks([n + 0.4 - height / 2 for n in range(len(data))], [d["label"] for d in data])
    axes.invert_yaxis()
    axes.margins(y=0.5 / len(data))
    axes.set_xlabel("time of a token, over amkc's in the precision of the line; what is not compiled is in bf16")
    axes.legend(frameon=False, loc="lower right")
    return figure


def boundaries(pyplot, data):
    """A line for each row, with a point for each way."""
    figure, axes = pyplot.subplots(figsize=(WIDTH, 1.2 + INCH_A_LINE * len(data)))
    for way in ("stream", "loop", "barriers", "launches for every layer", "launches for every stage"):
        there = [(n, d[way] / d["loop"]) for n, d in enumerate(data) if way in d]
        if there:
            axes.plot([x for _, x in there], [n for n, _ in there], "o", color=COLOURS[way], label=way)
    axes.set_yticks(range(len(data)), [d["label"] for d in data])
    axes.grid(axis="y", linewidth=0.3)
    axes.invert_yaxis()
    axes.set_xlabel("time of a token, or of a pass of a batch, over the loop's")
    axes.margins(y=0.5 / len(data))
    axes.legend(frameon=False, loc="lower center", bbox_to_anchor=(0.5, 1), ncols=5, handletextpad=0.1, columnspacing=1)
    return figure


def stream(pyplot, data):
    """A curve for each build, over four layers."""
    figure, all_axes = pyplot.subplots(len(data), 1, figsize=(WIDTH, 0.6 + 1.9 * len(data)), squeeze=False,
                                       layout="constrained")
    for axes, d in zip(all_axes[:, 0], data):
        for name, label in (("barriers", "barriers after every layer"), ("loop", "loop")):
            axes.plot([i * d["bin_us"] for i in range(len(d[name]))], [100 * x for x in d[name]], color=COLOURS[name],
                      linewidth=1, label=label)
        axes.set_ylim(0, 105)
        axes.set_ylabel("% of the SMs copying")
        axes.set_title(d["label"], fontsize=9, loc="left")
    all_axes[-1, 0].set_xlabel("µs from the beginning of layer 8 to the end of layer 11")
    all_axes[0, 0].legend(**ABOVE)
    return figure


def regret(pyplot, data):
    """For each start a panel, with a line of steps for each campaign that ends where the campaign does."""
    figure, all_axes = pyplot.subplots(len(data), 1, figsize=(WIDTH, 0.6 + 2.2 * len(data)), squeeze=False,
                                       layout="constrained")
    for axes, d in zip(all_axes[:, 0], data):
        for c in d["campaigns"]:
            line, = axes.step(c["seconds"], c["regret"], where="post", linewidth=1, label=c["name"])
            axes.plot(c["seconds"][-1], c["regret"][-1], "o", markersize=3, color=line.get_color())
        axes.set_xlim(left=0)
        axes.set_ylim(bottom=0)
        axes.set_ylabel("% above the best")
        axes.set_title(d["label"], fontsize=9, loc="left")
        axes.legend(**ABOVE)
    all_axes[-1, 0].set_xlabel("seconds of the GPU")
    return figure


DRAW = {"experiments-precision": precision, "experiments-boundaries": boundaries, "experiments-stream": stream,
        "campaigns-regret": regret}


def main():
    try:
        pyplot = plot()
    except ModuleNotFoundError as e:
        print(f"draw.py: error: there is no {e.name} here; pip install matplotlib", file=sys.stderr)
        return 2
    rows = experiments.store(machine.REPO / experiments.ROWS)
    r = answers.Results(rows.path.parent, rows)
    for d in drawings.DRAWINGS:
        data = d.data(r)
        if not data:
            d.path.unlink(missing_ok=True)
            continue
        figure = DRAW[d.name](pyplot, data)
        figure.savefig(d.path, format="svg", bbox_inches="tight", metadata={"Date": None, "Title": d.shows})
        text = d.path.read_text(encoding="utf-8")
        text = re.sub(r"(<svg )", rf"<!-- data: {drawings.digest(data)} -->\n\1", text, count=1)
        d.path.write_text("\n".join(line.rstrip() for line in text.splitlines()) + "\n", encoding="utf-8")
        print(d.path.relative_to(machine.REPO))
    experiments.render()
    campaignpage.main([])
    return 0


if __name__ == "__main__":
    sys.exit(main())
