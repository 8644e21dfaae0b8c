"""What candidates for defaults have come to, from what bench/candidates.py has written: a part of docs/campaigns.md.
Needs the standard library alone.
"""

ABOUT = """What campaigns have found for one model, judged with others before it becomes a default: final verdicts of
`amkc eval` over the defaults, by `bench/candidates.py`. A ratio is that of all positions of a row, with its 95 %
interval, and behind it that of each position. Defaults change where the gain is larger than what other models lose by
it."""


def section(rows):
    """The lines about them, by candidate."""
    lines = []
    for name in sorted({r["candidate"] for r in rows.values()}):
        of = [r for r in rows.values() if r["candidate"] == name]
        settings = ", ".join(f"`{k}` {v}" for k, v in sorted(of[0]["settings"].items()))
        lines += ["", f"### {name}", "", f"{settings}. Found by: {of[0]['found']}.", "",
                  "| model | GPU | ratio | at each position | decision |", "|---|---|---|---|---|"]
        for r in of:
            ratio = f"{r['ratio']['mean']:.4f} ({r['ratio']['low']:.4f} to {r['ratio']['high']:.4f})" if r["ratio"] \
                else f"{r['class']}, {r.get('code')}"
            at = ", ".join(f"{a['ratio']['mean']:.4f} at {a['position']:,}" for a in r["at"])
            lines.append(f"| {r['model']} | {r['target']} | {ratio} | {at} | {r['decision'] or ''} |")
    return ["", "## Candidates for defaults", "", ABOUT, *lines] if lines else []
