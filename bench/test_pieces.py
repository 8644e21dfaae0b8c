"""Tests of which rows are made in a piece of the time, and in which order, with rows that take a time and do nothing
(numpy, and what bench imports, alone)."""

import contextlib
import io
import sys
import tempfile
import unittest
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import endurance
import passes
import pieces
import report
import results
from test_results import HERE, row
from workshop import OutOfTime


@dataclass
class Clock:
    """A budget that passes as rows are made."""

    seconds: float
    now: float = 0

    def remaining(self):
        return self.seconds - self.now


@dataclass
class Task:
    id: str
    takes: float
    passes: bool = True
    seconds: int = 0


class Pieces(unittest.TestCase):
    def setUp(self):
        self.dir = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.tried = []

    def piece(self, tasks, seconds, here=HERE):
        """Runs a piece of so many seconds, and returns which rows were tried in it."""
        clock, store, out = Clock(seconds), report.Store(self.dir / "h200.json"), io.StringIO()
        self.tried = []

        def make_row(t):
            self.tried.append(t.id)
            clock.now += t.takes
            if clock.remaining() < 0:
                raise OutOfTime
            return row(t.id, t.passes)

        with contextlib.redirect_stdout(out):
            p = pieces.Piece(self.dir, clock, store, here)
            p.make(p.order([t for t in tasks if not store.done(t.id, here)]), make_row)
        self.said = out.getvalue()
        return self.tried

    def test_two_rows_are_made_where_the_first_cannot_be(self):
        tasks = [Task("bench/long", 100), Task("bench/a", 30), Task("bench/b", 30)]
        self.assertEqual(self.piece(tasks, 70), ["bench/long"])
        self.assertIn("3 rows are left", self.said)
        self.assertEqual(self.piece(tasks, 70), ["bench/a", "bench/b", "bench/long"])
        self.assertEqual(set(report.Store(self.dir / "h200.json").rows), {"bench/a", "bench/b"})
        self.assertEqual(self.piece(tasks, 170), ["bench/long"])

    def test_one_that_gives_up_leaves_the_time_to_others(self):
        def make_row(t):
            if t.id == "soak/a":
                raise OutOfTime  # rather than most of it for nothing
            return row(t.id)

        p = pieces.Piece(self.dir, Clock(70), report.Store(self.dir / "h200.json"), HERE)
        with contextlib.redirect_stdout(io.StringIO()):
            self.assertEqual(p.make([Task("soak/a", 0), Task("bench/b", 0)], make_row), 1)

    def test_what_was_never_made_comes_before_what_fails(self):
        tasks = [Task("bench/fails", 30, False), Task("bench/fails-too", 30, False), Task("bench/new", 30)]
        self.assertEqual(self.piece(tasks, 30), ["bench/fails"])
        self.assertEqual(self.piece(tasks, 60), ["bench/fails-too", "bench/new"])
        self.assertEqual(self.piece(tasks, 30), ["bench/fails"])
        self.assertEqual(self.piece(tasks, 30), ["bench/fails-too"], "it was tried once, and the other one twice")

    def test_a_failure_of_elsewhere_counts_once(self):
        report.Store(self.dir / "h200.json").put(row("bench/fails", False), HERE)
        self.assertEqual(self.piece([Task("bench/fails", 1), Task("bench/new", 1)], 10), ["bench/new", "bench/fails"])

    def test_another_amkc_tries_all_anew(self):
        tasks = [Task("bench/long", 100), Task("bench/a", 100)]
        self.piece(tasks, 70)
        self.assertEqual(self.piece(tasks, 70, HERE | {"amkc": "2"}), ["bench/long"])
        self.assertEqual(self.piece(tasks, 70, HERE | {"amkc": "2", "driver": "9"}), ["bench/a"], "not by the driver")

    def test_what_needs_longer_is_not_begun_and_says_so(self):
        tasks = [Task("soak/a", 480, seconds=480), Task("bench/b", 30)]
        self.assertEqual(self.piece(tasks, 270), ["bench/b"])
        self.assertIn("soak/a: it takes 480 s at a time; want --budget 600 or more", self.said)
        self.assertEqual(self.piece(tasks, 600), ["soak/a"])

    def test_those_of_eight_minutes_say_so(self):
        long = [t for t in results.tasks([], []) if t.seconds]
        self.assertEqual({t.section for t in long}, {"soak", "sequences"})
        self.assertEqual({t.seconds for t in long}, {endurance.LONG_SOAK_SECONDS, 60 * passes.SOAK_MINUTES})
        self.assertEqual(max(t.seconds for t in long) + pieces.SPARE_SECONDS, 600, "as bench/README.md says")


if __name__ == "__main__":
    unittest.main()
