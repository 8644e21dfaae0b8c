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
        self.assertIn(", 1 not: they are not newer, or were not run", out.getvalue())
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
        old.rows["bench/a"]["max_error"] = 3
        self.assertEqual(store.take(old), 0, "of two without a time the one that is there stays")
        store.put(row("bench/a", max_error=2), HERE)
        self.assertEqual(store.take(old), 0)
        self.assertEqual(store.rows["bench/a"]["max_error"], 2)

    def test_an_older_failure_replaces_no_pass_and_a_newer_one_does(self):
        store, other = report.Store(self.dir / "h200.json"), report.Store(self.dir / "other.json")
        with at(2):
            store.put(row("bench/a", max_error=1), HERE)
        for hour, taken in ((1, 0), (3, 1)):
            with at(hour):
                other.put(row("bench/a", False, max_error=2), HERE)
            self.assertEqual(store.take(other), taken)
            other.path.unlink()

    def test_what_was_not_run_replaces_nothing_that_was(self):
        store = report.Store(self.dir / "h200.json")
        self.assertTrue(store.put(row("bench/a", None, not_run="no torch"), HERE))
        self.assertTrue(store.put(row("bench/a", max_error=1), HERE))
        self.assertFalse(store.put(row("bench/a", None, not_run="no torch"), HERE))
        self.assertEqual(report.Store(store.path).rows["bench/a"]["max_error"], 1)

    def test_two_that_write_one_file_lose_nothing(self):
        first, second = report.Store(self.dir / "h200.json"), report.Store(self.dir / "h200.json")
        first.put(row("bench/a", max_error=1), HERE)
        second.put(row("bench/b", max_error=2), HERE | {"amkc": "2"})
        first.put(row("bench/c", max_error=3), HERE)
        rows = report.Store(first.path)
        self.assertEqual(set(rows.rows), {"bench/a", "bench/b", "bench/c"})
        self.assertEqual(rows.environments[rows.rows["bench/b"]["environment"]]["amkc"], "2")

    def test_a_section_that_there_is_not_is_refused(self):
        store, other = report.Store(self.dir / "h200.json"), self.dir / "there" / "h200.json"
        store.put(row("bench/a"), HERE)
        strange = report.Store(other)
        strange.sections.append("gone")
        strange.put(row("gone/a"), HERE)
        out = io.StringIO()
        with contextlib.redirect_stderr(out), mock.patch.object(results, "render") as render:
            self.assertEqual(results.main(["--out", str(self.dir), "--merge", str(other)]), 2)
        self.assertIn("row gone/a: want one of the environments of the file, a section of fixtures", out.getvalue())
        self.assertFalse(render.called)


def at(hour):
    """A clock that stands at an hour, for rows that are put."""
    then = datetime(2026, 1, 1, hour, tzinfo=timezone.utc)
    return mock.patch.object(report, "datetime", mock.Mock(now=lambda zone: then))


if __name__ == "__main__":
    unittest.main()
