"""Tests of rows that were made on another machine, and are put into docs/results (numpy, and what bench imports,
alone)."""

import contextlib
import io
import shutil
import sys
import tempfile
import unittest
from datetime import datetime, timezone
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parent))

import report
import results
from test_results import HERE, row


class Merging(unittest.TestCase):
    def setUp(self):
        self.dir = Path(self.enterContext(tempfile.TemporaryDirectory()))

    def test_rows_made_elsewhere_are_put_in(self):
        here, there = self.dir / "h200.json", self.dir / "elsewhere"
        store = report.Store(here)
        store.put(row("bench/a", max_error=1), HERE)
        store.put(row("bench/b", max_error=1), HERE)
        other = report.Store(there / "h200.json")
        other.put(row("bench/b", None, max_error=2), HERE | {"amkc": "2"})
        other.put(row("bench/a", False, max_error=2), HERE | {"amkc": "2"})
        other.put(row("fixtures/c"), HERE)
        out = io.StringIO()
        with contextlib.redirect_stdout(out), mock.patch.object(results, "render") as render:
            code = results.main(["--out", str(self.dir), "--merge", str(there / "h200.json")])
        self.assertEqual((code, render.call_count), (0, 1))
        self.assertIn("3 rows, of which 1 pass; 2 put into ", out.getvalue())
        self.assertIn(", 1 not: they are older or were not run", out.getvalue())
        store = report.Store(here)
        self.assertEqual({i: r["max_error"] for i, r in store.rows.items() if "max_error" in r},
                         {"bench/a": 2, "bench/b": 1})
        self.assertEqual(store.environments[store.rows["bench/a"]["environment"]]["amkc"], "2")
        self.assertEqual(store.rows["bench/b"]["environment"], store.rows["fixtures/c"]["environment"])
        with contextlib.redirect_stderr(out):
            self.assertEqual(results.main(["--out", str(self.dir), "--merge", str(there / "none.json")]), 2)

    def test_a_copy_of_before_puts_no_older_row_over_a_newer_one(self):
        store = report.Store(self.dir / "h200.json")
        with at(1):
            store.put(row("bench/a", max_error=1), HERE)
            store.put(row("bench/b", max_error=1), HERE)
        copied = self.dir / "copy" / "h200.json"
        copied.parent.mkdir()
        shutil.copy(store.path, copied)
        with at(2):
            store.put(row("bench/a", max_error=2), HERE)
        copy = report.Store(copied)
        with at(3):
            copy.put(row("bench/b", max_error=3), HERE)
        self.assertEqual(store.take(copy), 1)
        self.assertEqual({i: r["max_error"] for i, r in store.rows.items()}, {"bench/a": 2, "bench/b": 3})

    def test_rows_of_before_there_were_times_give_way(self):
        store, old = report.Store(self.dir / "h200.json"), report.Store(self.dir / "old.json")
        old.put(row("bench/a", max_error=1), HERE)
        del old.rows["bench/a"]["made"]
        self.assertEqual(store.take(old), 1)
        store.put(row("bench/a", max_error=2), HERE)
        self.assertEqual(store.take(old), 0)
        self.assertEqual(store.rows["bench/a"]["max_error"], 2)


def at(hour):
    """A clock that stands at an hour, for rows that are put."""
    then = datetime(2026, 1, 1, hour, tzinfo=timezone.utc)
    return mock.patch.object(report, "datetime", mock.Mock(now=lambda zone: then))


if __name__ == "__main__":
    unittest.main()
