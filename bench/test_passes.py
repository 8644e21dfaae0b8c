"""Tests of the verdicts of bench/passes.py: python3 -m unittest discover bench. They need numpy."""

import json
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import passes
from workshop import Case


class Cases(unittest.TestCase):
    def test_every_family(self):
        zoo = Path(__file__).resolve().parent.parent / passes.ZOO
        kind = lambda directory: json.loads((directory / "config.json").read_text())["model_type"]
        have = {kind(zoo / case.name) for case in passes.FAMILIES if case.rows > 1}
        refused = {"bloom", "dots1", "ernie4_5_moe", "flex_olmo", "glm4_moe", "gpt_oss", "granitemoe",
                   "granitemoeshared", "lfm2_moe", "minimax_m2", "mixtral", "olmoe", "phimoe", "qwen2_moe",
                   "qwen3_5", "qwen3_5_moe", "qwen3_5_moe_text", "qwen3_5_text", "qwen3_moe", "qwen3_next",
                   "solar_open"}
        self.assertEqual({kind(path.parent) for path in zoo.glob("*/config.json")} - have, refused)

    def test_seeds(self):
        seeds = {}

        class Shop:
            def finish(self, case, *_):
                self.case = case

            def on_device(self, _, *args, **__):
                seeds[self.case] = args[args.index("--seed") + 1]
                raise NotImplementedError

        for task in passes.passes():
            with self.assertRaises(NotImplementedError):
                task.run(Shop())
        self.assertEqual([seeds[case] for case, _ in passes.RESEEDED], ["2", "2"])
        self.assertEqual(set(seeds.values()), {"1", "2"})
        ids = [task.id for task in passes.passes()]
        self.assertEqual(len(ids), len(set(ids)))


class Judges(unittest.TestCase):
    def test_passes(self):
        case = Case("testdata/models/zoo/llama-gqa", "bf16", rows=8, sequences=8)
        kinds = {k: 40 for k in ("prompts", "drafts", "rows of 1", "rows of 2", "rows of 3", "rows of 5", "rows of 8",
                                 "sequences")}
        r = {"seed": 1, "cases": passes.CASES, "kinds": kinds, "from_prefix": 9, "drafts": 99, "compared": 5000,
             "beside": 700, "differing": 0, "difference": "", "passed": True, "seconds": 3.0, "positions": 512}
        row = passes.judge_passes(case, r)
        self.assertEqual((row["passed"], row["compared"]), (True, 5000))
        for change, want in (({"differing": 2, "difference": "case 3, rows: position 7: ...", "passed": False},
                              "2 of 5000: case 3, rows"),
                             ({"kinds": {"prompts": 300}}, "nothing was compared of drafts, rows of 1"),
                             ({"cases": 12}, "12 cases"), ({"from_prefix": 0}, "0 from a prefix")):
            row = passes.judge_passes(case, r | change)
            self.assertFalse(row["passed"])
            self.assertIn(want, row["findings"][0])
        mixed = Case("testdata/models/zoo/llama-gqa", "bf16", rows=8, sequences=4, sequence_rows=2)
        self.assertIn("nothing was compared of mixed", passes.judge_passes(mixed, r)["findings"][0])
        self.assertTrue(passes.judge_passes(mixed, r | {"kinds": kinds | {"mixed": 40}})["passed"])
        plain = passes.judge_passes(Case("testdata/models/zoo/llama-gqa", "fp32"), r | {"kinds": {"prompts": 300}})
        self.assertTrue(plain["passed"])

    def test_aborts(self):
        case = Case("testdata/models/zoo/llama-gqa", "bf16", rows=8, sequences=8)
        r = {"seed": 1, "cases": passes.CASES, "kinds": {"aborts of rows": 400}, "from_prefix": 9, "drafts": 0,
             "compared": 5000, "beside": 700, "differing": 0, "difference": "", "passed": True,
             "given_up": {"prompts": 30, "rows": 20, "sequences": 90}}
        self.assertTrue(passes.judge_aborts(case, r)["passed"])
        mixed = Case("testdata/models/pycoder-5m", "bf16", rows=8, sequences=4, sequence_rows=2)
        self.assertIn("nothing was given up of mixed", passes.judge_aborts(mixed, r)["findings"][0])
        self.assertTrue(passes.judge_aborts(mixed, r | {"given_up": r["given_up"] | {"mixed": 9}})["passed"])
        for change, want in (({"differing": 2, "difference": "case 3, aborts: ...", "passed": False}, "2 of 5000"),
                             ({"given_up": {"prompts": 30}}, "nothing was given up of rows, sequences"),
                             ({"cases": 12}, "12 cases")):
            row = passes.judge_aborts(case, r | change)
            self.assertFalse(row["passed"])
            self.assertIn(want, row["findings"][0])

    def test_pass_times(self):
        r = {"check": {"passed": True}, "latency_us": {"median": 100.0}, "passes": [
            {"rows": 8, "latency_us": {"median": 120.0}},
            {"rows": 1, "sequences": 8, "latency_us": {"median": 110.0}}]}
        row = passes.judge_pass_times(r)
        self.assertTrue(row["passed"])
        self.assertEqual((row["rows_us"], row["rows_over_token"], row["sequences_over_token"]), (120.0, 1.2, 1.1))
        self.assertIn("no pass of several sequences",
                      passes.judge_pass_times(r | {"passes": r["passes"][:1]})["findings"][0])
        failed = passes.judge_pass_times(r | {"check": {"passed": False, "failures": ["x"]}})
        self.assertEqual((failed["passed"], "rows_us" in failed), (False, False))

    def test_sequences(self):
        r = {"seed": 1, "minutes": 8.1, "sequences": 8, "finished": 700, "left": 30, "sampled": 90, "tokens": 40_000,
             "cached": 800, "beside": 39_000, "aborts": 40, "after_abort": 100, "differing": 0, "difference": "",
             "goroutines": 5, "heap_mb": 3.0, "resident_mb": 90.0, "growth": "", "passed": True}
        self.assertTrue(passes.judge_sequences(r)["passed"])
        for change, want in (({"differing": 1, "difference": "text 4: ...", "passed": False}, "1 texts: text 4"),
                             ({"growth": "the heap has grown", "passed": False}, "the heap has grown"),
                             ({"minutes": 7.5}, "700 texts in 7.5 minutes"), ({"after_abort": 0}, "0 after a step")):
            row = passes.judge_sequences(r | change)
            self.assertFalse(row["passed"])
            self.assertIn(want, row["findings"][0])


if __name__ == "__main__":
    unittest.main()
