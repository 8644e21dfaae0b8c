"""Tests that pages are rendered from rows alone (numpy, and what bench imports, alone)."""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import machine
import zoo


class Rendering(unittest.TestCase):
    def test_the_models_are_named(self):
        there = {path.parent.name for path in (machine.REPO / "testdata/models/zoo").glob("*/config.json")}
        self.assertEqual(sorted(zoo.ZOO + zoo.COVERED), sorted(there))

    def test_pages_are_the_same_where_the_models_are_not(self):
        """As on a machine with a GPU, that gets the models of its rows and no others."""
        pages = ("docs/results/README.md", "BENCHMARKS.md", "docs/experiments.md")
        with tempfile.TemporaryDirectory() as tmp:
            repo = Path(tmp)
            for part in ("bench", "docs/results", "docs/img", "testdata/configs"):
                shutil.copytree(machine.REPO / part, repo / part, ignore=shutil.ignore_patterns("*.pyc", "*.html"))
            done = subprocess.run([sys.executable, "bench/results.py", "--render"], cwd=repo, text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  env=os.environ | {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p)})
            self.assertEqual(done.returncode, 0, done.stdout)
            for page in pages:
                self.assertEqual((repo / page).read_text(encoding="utf-8"),
                                 (machine.REPO / page).read_text(encoding="utf-8"), page)


if __name__ == "__main__":
    unittest.main()
