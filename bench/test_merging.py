"""Tests of rows that were made on another machine, and are put into docs/results (numpy, and what bench imports,
alone)."""

import contextlib
import io
import sys
import tempfile
import unittest
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
        self.assertIn("3 rows, of which 1 pass", out.getvalue())
        store = report.Store(here)
        self.assertEqual({i: r["max_error"] for i, r in store.rows.items() if "max_error" in r},
                         {"bench/a": 2, "bench/b": 1})
        self.assertEqual(store.environments[store.rows["bench/a"]["environment"]]["amkc"], "2")
        self.assertEqual(store.rows["bench/b"]["environment"], store.rows["fixtures/c"]["environment"])
        with contextlib.redirect_stderr(out):
            self.assertEqual(results.main(["--out", str(self.dir), "--merge", str(there / "none.json")]), 2)


if __name__ == "__main__":
    unittest.main()
