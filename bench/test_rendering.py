"""Tests that the pages of docs/results are what their rows say, and are all in the index (numpy alone)."""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import accuracy
import machine
import report
import results

RESULTS = machine.REPO / "docs/results"
# Models without a row of a GPU: amkc refuses the first two, the windows of the next three change nothing, kernels have
# no body for short convolutions and delta rules, and those with experts are yet to be measured.
NOT_RUN = ("bloom", "llama-gelu", "mistral-window-wide", "qwen2-window-of-no-layer", "qwen2-window-unused",
           "lfm2-biases", "lfm2-former", "lfm2-moe", "qwen3-5", "qwen3-5-moe", "qwen3-5-moe-text", "qwen3-5-text",
           "qwen3-5-tied", "qwen3-next", "gemma4-images", "gemma4-keys-serve", "gemma4-odd-dims", "gpt-oss-sinks",
           "granite-moe-scaled", "granite-moe-shared",
           "mixtral-window", "olmoe-plain", "qwen2-moe-shared", "qwen3-moe-dense-layer", "qwen3-moe-windows",
           "dots1-windows", "ernie4-5-moe-biases", "ernie4-5-moe-tied", "flex-olmo", "glm4-moe-groups",
           "glm4-moe-head-norms", "gpt-oss-mxfp4", "minimax-m2-part", "phimoe-long", "phimoe-window", "solar-open")


class Rendering(unittest.TestCase):
    def test_the_models_are_named(self):
        there = {path.parent.name for path in (machine.REPO / "testdata/models/zoo").glob("*/config.json")}
        self.assertEqual(sorted((*accuracy.ZOO, *NOT_RUN)), sorted(there))

    def test_pages_are_what_the_rows_say(self):
        stores = report.stores(RESULTS)
        self.assertLessEqual({"h100.json", "h200.json"}, {store.path.name for store in stores})
        for store in stores:
            self.assertEqual(store.path.with_suffix(".md").read_text(encoding="utf-8"),
                             report.page(store, results.planned(store.path.stem)),
                             "make it anew: python3 bench/results.py --render")

    def test_the_index_names_every_page(self):
        index = (RESULTS / "README.md").read_text(encoding="utf-8")
        for path in RESULTS.glob("*.md"):
            self.assertTrue(path.name == "README.md" or f"({path.name})" in index, path)

    def test_pages_are_the_same_where_the_models_are_not(self):
        """As on a machine with a GPU, that gets the models of its rows and no others."""
        with tempfile.TemporaryDirectory() as tmp:
            repo = Path(tmp)
            for part in ("bench", "docs/results", "testdata/configs"):
                shutil.copytree(machine.REPO / part, repo / part, ignore=shutil.ignore_patterns("*.pyc", "*.html"))
            done = subprocess.run([sys.executable, "bench/results.py", "--render"], cwd=repo, text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  env=os.environ | {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p)})
            self.assertEqual(done.returncode, 0, done.stdout)
            for page in RESULTS.glob("*.md"):
                self.assertEqual((repo / "docs/results" / page.name).read_text(encoding="utf-8"),
                                 page.read_text(encoding="utf-8"), page)


if __name__ == "__main__":
    unittest.main()
