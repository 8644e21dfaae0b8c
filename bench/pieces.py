"""Rows that are made in pieces: as many as the budget allows, and the others by the same command later.

Must not know how a row is made.
"""

import json
import os
from pathlib import Path

import report
from workshop import OutOfTime

SPARE_SECONDS = 120  # for tools and builds, besides what a row takes by itself


class Piece:
    """The rows of one invocation. How often those were tried that have not passed is kept in its directory of builds,
    for the amkc and the GPU of now: the one that was tried least is next, so that none keeps another from its turn."""

    def __init__(self, work, budget, store, made_in):
        self.path, self.budget, self.store, self.made_in = Path(work) / "tries.json", budget, store, made_in
        self.facts = {fact: made_in.get(fact) for fact in report.IDENTITY}
        kept = report.load(self.path) if self.path.exists() else {}
        self.tries = kept.get("tries", {}) if kept.get("facts") == self.facts else {}

    def order(self, tasks):
        """Tasks in the order in which to try them."""
        return sorted(tasks, key=self.tried)

    def tried(self, task):
        row = self.store.rows.get(task.id)
        return max(self.tries.get(task.id, 0), bool(row and not row["passed"]))

    def note(self, task, passed):
        """Keeps that a task was tried once more, or has passed."""
        tries = self.tried(task)
        self.tries.pop(task.id, None)
        if not passed:
            self.tries[task.id] = tries + 1
        partial = self.path.with_suffix(".part")
        partial.write_text(json.dumps({"facts": self.facts, "tries": self.tries}), encoding="utf-8")
        os.replace(partial, self.path)

    def make(self, todo, make_row):
        """Makes the rows that there is time for, and returns how many have passed."""
        passed, left = 0, []
        for t in todo:
            before = self.budget.remaining()
            if before <= 0 or before < t.seconds:
                left.append(t)
                continue
            self.note(t, False)  # before it is tried: a run that is killed meanwhile has tried it too
            try:
                row = make_row(t)
            except OutOfTime:
                print(f"{t.id}: left after {before - self.budget.remaining():.0f} s", flush=True)
                left.append(t)
                continue
            kept = "" if self.store.put(row, self.made_in) else "; the row of before stays"
            if row["passed"]:
                self.note(t, True)
                passed += 1
            print(f"{t.id}: {report.outcome(row)}{kept}", flush=True)
        self.say(left)
        return passed

    def say(self, left):
        if left:
            print(f"the time is up: {len(left)} rows are left; the same command goes on from here", flush=True)
        for t in left:
            if self.budget.seconds < t.seconds + SPARE_SECONDS:
                print(f"{t.id}: it takes {t.seconds} s at a time; want --budget {t.seconds + SPARE_SECONDS} or more",
                      flush=True)
