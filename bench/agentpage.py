"""What an agent's experiments have come to, from what bench/agent.py has packed: a part of the row of its campaign, and
of docs/campaigns.md. Needs the standard library alone.
"""

import json

from packing import EXPERIMENTS, trials
from ratios import interval

ABOUT = """Of these campaigns an agent has proposed the trials, and not the machine. It had no GPU, and went by
[program.md](program.md) and pages that this links to: it wrote configurations with what it expected of each,
`bench/agent.py` made their trials, and it wrote more when it had seen the verdicts. An experiment is judged as it is
against the best before it. Its number leads to what the agent expected."""


def experiments(directory):
    """The experiments of a campaign that have a verdict, in their order; none if an agent had no part in it. A verdict
    that the campaign has not recorded is none: a run was killed before it could, and the next one may make another."""
    recorded = {t["verdict"].get("signature") for t in trials(directory) if t.get("verdict")}
    out = []
    for file in sorted((directory / EXPERIMENTS).glob("*.verdict.json"), key=lambda f: int(f.name.split(".")[0])):
        v = json.loads(file.read_text(encoding="utf-8"))["verdict"]
        if v["signature"] not in recorded:
            continue
        one = {"number": int(file.name.split(".")[0]), "settings": v["settings"], "baseline": v["baseline"],
               "class": v["class"], "decision": v["decision"], "ratio": v.get("ratio")}
        if "reason" in v:
            one["code"] = v["reason"]["code"]
        out.append(one)
    return out


def section(rows):
    """The lines about the campaigns of agents."""
    lines = []
    for name, row in rows.items():
        if not row.get("experiments"):
            continue
        lines += ["", f"### {name}", "", "| experiment | settings | against | ratio | decision |",
                  "|---|---|---|---|---|"]
        for e in row["experiments"]:
            ratio = interval(e["ratio"]) or f"{e['class']}, {e['code']}"
            lines.append(f"| [{e['number']}](results/agent/{e['number']}.txt) | {spelt(e['settings'])} | "
                         f"{spelt(e['baseline'])} | {ratio} | {e['decision']} |")
    return ["", "## By an agent", "", ABOUT, *lines] if lines else []


def spelt(settings):
    return ", ".join(f"`{k}` {v}" for k, v in sorted(settings.items())) or "the defaults"
