"""What candidates for defaults have come to, from what bench/candidates.py has written: a part of docs/campaigns.md.
Needs the standard library alone.
"""

import textwrap

from defaults import CANDIDATES, OVER
from ratios import interval

ABOUT = """What campaigns have found for one model, judged with others before it becomes a default: final verdicts of
`amkc eval` over the defaults, by `bench/candidates.py`. A ratio is that of all positions of a row, with its 95 %
interval, and behind it that of each position. Defaults change where the gain is larger than what other models lose by
it. The column *over* says which defaults a row was judged against:
"""


def section(rows):
    """The lines about them, by candidate."""
    lines = []
    for c in CANDIDATES:
        of = [r for r in rows.values() if r["candidate"] == c.name]
        if not of:
            continue
        settings = ", ".join(f"`{k}` {v}" for k, v in sorted(of[0]["settings"].items()))
        about = f"{settings}. Where it comes from: {c.found}. What came of it: {c.settled or 'not settled'}."
        lines += ["", f"### {c.name}", "", *textwrap.wrap(about, 119, break_on_hyphens=False), "",
                  "| model | GPU | over | ratio | at each position | decision |", "|---|---|---|---|---|---|"]
        for r in of:
            ratio = interval(r["ratio"]) or f"{r['class']}, {r.get('code')}"
            at = ", ".join(f"{a['ratio']['mean']:.4f} at {a['position']:,}" for a in r["at"])
            lines.append(f"| {r['model']} | {r['target']} | {r['defaults']} | {ratio} | {at} | {r['decision'] or ''} |")
    over = [f"{n}. {what}" for n, what in enumerate(OVER, 1)]
    return ["", "## Candidates for defaults", "", ABOUT, *over, *lines] if lines else []
