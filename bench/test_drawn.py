"""Tests of the section drawn: no GPU."""

import json
import os
import sys
import types
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import drawn
import machine
import results

os.chdir(machine.REPO)


def said(latency, by_temperature, kept):
    """What bench --drawn prints, as far as it counts here."""
    def times(us):
        return {"median": us, "p10": us - 1, "p90": us + 1}
    return {"check": {"passed": True}, "position": 128, "latency_us": times(latency),
            "drawn_us": times(by_temperature),
            "chosen": [{"how": "top-k 50 and top-p 0.95", "latency_us": times(kept)},
                       {"how": "a mask", "latency_us": times(latency)}]}


class Judged(unittest.TestCase):
    def test_a_temperature_costs_a_large_model_little(self):
        row = drawn.judge_drawn(said(800.0, 804.0, 848.0), drawn.COST)
        self.assertTrue(row["passed"], row["findings"])
        self.assertAlmostEqual(row["drawn_percent"], 0.5)
        self.assertEqual([(c["how"], round(c["percent"], 6), c["latency_us"]["p10"]) for c in row["chosen"]],
                         [("top-k 50 and top-p 0.95", 6.0, 847), ("a mask", 0.0, 799)])
        self.assertEqual((row["latency_us"]["median"], row["drawn_us"]["p90"]), (800, 805))
        row = drawn.judge_drawn(said(800.0, 812.0, 848.0), drawn.COST)
        self.assertFalse(row["passed"])
        self.assertIn("1.5 % longer with a temperature; 1 % are allowed", row["findings"][0])
        self.assertAlmostEqual(row["drawn_percent"], 1.5, msg="what it costs is said all the same")

    def test_a_small_one_is_measured(self):
        row = drawn.judge_drawn(said(45.0, 46.8, 60.0))
        self.assertTrue(row["passed"])
        self.assertAlmostEqual(row["drawn_percent"], 4.0)

    def test_a_kernel_that_is_wrong_is_not_timed(self):
        row = drawn.judge_drawn(said(45.0, 46.8, 60.0) | {"check": {"passed": False, "failures": ["x"]}}, drawn.COST)
        self.assertEqual((row["passed"], "drawn_percent" in row), (False, False))

    def test_nothing_that_was_drawn_is_no_row(self):
        r = said(45.0, 46.8, 60.0)
        del r["drawn_us"]
        with self.assertRaises(KeyError):
            drawn.judge_drawn(r)


class Rows(unittest.TestCase):
    def test_tasks(self):
        tasks = results.tasks(["drawn"], [])
        self.assertEqual([t.id for t in tasks], ["drawn/pycoder-5m-bf16-128", "drawn/smollm2-135m-bf16-seed1-128",
                                                 "drawn/llama-3.2-1b-bf16-seed1-128"])
        self.assertLessEqual({t.id for t in tasks}, set(results.planned("h100")))

    def test_the_limit_is_of_the_large_model(self):
        for task in results.tasks(["drawn"], []):
            asked = []

            def on_device(directory, *args):
                asked.append(args)
                return types.SimpleNamespace(stdout=json.dumps(said(100.0, 102.0, 110.0)))

            shop = types.SimpleNamespace(finish=lambda case: "build", settle=lambda: None, on_device=on_device)
            self.assertEqual(task.run(shop)["passed"], "llama-3.2-1b" not in task.id, task.id)
            self.assertEqual(asked, [("bench", "--json", "--drawn", "--position", "128", "--launches", "300")])


if __name__ == "__main__":
    unittest.main()
