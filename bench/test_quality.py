"""Tests of section quality, with logits that are made up: numpy alone."""

import contextlib
import json
import sys
import unittest
from pathlib import Path
from unittest import mock

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))

import machine
import quality
import reference

REPORT = {"tokens": 187, "windows": 1, "perplexity": {"model": 3.0, "against": 3.1}, "kl": {"mean": 1e-4},
          "top1_agreement": 0.9, "greedy": {"tokens": 64, "mean": 60.5, "min": 40}}


class Quality(unittest.TestCase):
    def test_loss_is_that_of_the_tokens_that_follow(self):
        logits = np.log(np.array([[0.5, 0.25, 0.25], [0.1, 0.1, 0.8]], np.float32)) + 3
        self.assertAlmostEqual(quality.loss(logits, [1, 2]), -np.log(0.25) - np.log(0.8), places=6)

    def test_windows_are_texts_of_their_own(self):
        fed = []

        @contextlib.contextmanager
        def even(model, dtype):
            yield mock.Mock(logits=lambda ids: fed.append(len(ids)) or np.zeros((len(ids), 8), np.float32))

        with mock.patch.object(reference, "checkpoint", even), mock.patch.object(quality.np, "load",
                                                                                 lambda path: np.arange(1025) % 8):
            self.assertAlmostEqual(quality.perplexity("fp32", 1025), 8.0)
        self.assertEqual(fed, [511, 511], "a window of one token predicts nothing")

    def test_a_gap_that_is_too_wide_is_a_finding(self):
        row = quality.judge(REPORT, "fp32", "", 3.00001, 3.00001)
        self.assertEqual((row["passed"], row["greedy_least"], row["kl"]), (True, 40, 1e-4))
        self.assertAlmostEqual(row["gap"], -1e-5)
        for args in (("fp32", "", 3.0001, 3.0001), ("bf16", "", 3.05, 3.0), ("bf16", "int4", 2.4, 3.0)):
            row = quality.judge(REPORT, *args)
            self.assertIs(row["passed"], False, args)
            self.assertIn("is allowed", row["findings"][0])
        not_a_number = json.loads(json.dumps(REPORT | {"perplexity": {"model": float("nan"), "against": 1.0}}))
        self.assertIs(quality.judge(not_a_number, "bf16", "", 3.0, 3.0)["passed"], False)

    def test_the_longest_is_the_whole_text(self):
        self.assertEqual(quality.LENGTHS[-1], len(np.load(machine.REPO / quality.MODEL / quality.TEXT)))

    def test_names_are_apart(self):
        names = [t.name for t in quality.quality()]
        self.assertEqual(len(names), len(set(names)))
        self.assertIn("pycoder-5m-bf16-int4-g128-sym-188", names)


if __name__ == "__main__":
    unittest.main()
