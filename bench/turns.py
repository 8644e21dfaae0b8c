"""Builds that are measured interleaved, round by round, in one process of bench/device.

Needs the standard library alone. What is made of the numbers is the sections' business.
"""

import json
from dataclasses import dataclass

from workshop import RUN_SECONDS, StepFailed, first_complaint, spell

TURN_SECONDS = 20  # for a turn, or for opening a build and checking it
KEPT = ("position", "steps_per_launch", "launches", "latency_us", "ceiling_us", "drain_us", "bytes_per_token", "gbs",
        "ceiling_gbs",
        "read_gbs", "share_of_ceiling", "machine", "passes", "prompt")


@dataclass(frozen=True)
class Entrant:
    """A build, and how many tokens per launch of it decodes; 0 for as many as bench takes by itself."""

    directory: object
    steps: int = 0

    @property
    def name(self):
        return f"{self.directory}:{self.steps}" if self.steps else str(self.directory)


def kept(report):
    """What goes into a row of what bench reports, as far as it is there."""
    return {k: report[k] for k in KEPT if k in report}


def take_turns(shop, entrants, positions, rounds, launches, prompt=0):
    """Measures entrants, a dict by name, and returns for each (name, position) a list with a dict for every round:
    `findings`, and what is kept of the report if there are none. With a prompt of n tokens, its time too."""
    args = [str(shop.tools.device), "turns", "--positions", ",".join(map(str, positions)), "--rounds", str(rounds),
            "--launches", str(launches)]
    args += ["--prompt", str(prompt)] if prompt else []
    args += [e.name for e in entrants.values()]
    shop.log.append(spell(args))
    seconds = max(RUN_SECONDS, TURN_SECONDS * len(entrants) * (2 + rounds * len(positions)))
    done = shop.execute(args, seconds, accept=(0, 1, 2))
    return judge_turns(entrants, positions, rounds, done.stdout, done.stderr)


def judge_turns(entrants, positions, rounds, stdout, stderr):
    """Sorts what device turns has printed. A turn of which it says nothing is one that was not taken."""
    said = {}
    for line in stdout.splitlines():
        t = json.loads(line)
        said[t["build"], t["position"],
             t["round"]] = {"findings": [t["error"]]} if "error" in t else {"findings": []} | kept(t["report"])
    if not said:
        raise StepFailed(f"device turns measured nothing: {first_complaint(stderr)}")
    missing = {"findings": [f"not measured: {first_complaint(stderr)}"]}
    return {(name, p): [said.get((e.name, p, i), missing) for i in range(rounds)] for name, e in entrants.items()
            for p in positions}
