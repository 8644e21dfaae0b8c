"""Regret: the time of the best that a campaign knew after so many GPU seconds, over that of the best found by any
campaign with the same start, minus 1. Needs the standard library alone.
"""

import re

from defaults import over

SEEDED = re.compile(r"(.+)-(cold|warm)-seed\d+-(\w+)")  # campaigns that are compared by their seeds


def best_at(row, seconds):
    """The best that a campaign knew after so many GPU seconds; None if it has not come that far."""
    if row["gpu_seconds"] < seconds:
        return None
    return next((ratio for at, ratio in reversed(row["curve"]) if at <= seconds), 1.0)


def spelled(settings):
    return ", ".join(f"`{k}` {v}" for k, v in sorted(settings.items()))


def began(row):
    """Where a campaign begins: cold, or at defaults, by their number, which later ones are not compared with."""
    if row["cold"]:
        return "cold"
    defaults = f"defaults {over(row.get('begun', ''))}"
    return f"{defaults} with {spelled(row['start'])}" if "start" in row else defaults


def starts(rows):
    """Campaigns that can be compared, by what they have in common: model, target, positions and start."""
    groups = {}
    for row in rows:
        groups.setdefault((row["model"], row["target"], tuple(row["positions"]), began(row)), []).append(row)
    return {key: group for key, group in groups.items() if len(group) > 1}


def least(group):
    return min(r["estimate"] for r in group)


def curves(rows):
    """What is drawn: of each start the campaigns, each with the seconds at which it knew something better, the last of
    which is as far as it came, and the regret from there on, in %."""
    out = []
    for (model, target, positions, start), group in starts(rows).items():
        lines = []
        for r in group:
            points = [*r["curve"], [r["gpu_seconds"], r["estimate"]]]
            name = r["name"].removeprefix(f"{model}-").removesuffix(f"-{target}")  # the rest is said once, above
            lines.append({"name": name, "seconds": [0, *(at for at, _ in points)], "regret": [
                round(100 * (ratio / least(group) - 1), 2) for ratio in (1.0, *(ratio for _, ratio in points))]})
        at, values = ", ".join(map(str, positions)), "the least clever values" if start == "cold" else start
        out.append({"label": f"{model}, {target}, at {at}, from {values}", "campaigns": lines})
    return out
