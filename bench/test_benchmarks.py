"""Tests of what is generated from docs/results: python3 -m unittest discover bench (numpy alone, for the criteria)."""

import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import ablations
import benchmarks
import comparing
import endurance
import machine
import report
import results
from test_results import HERE, row

RESULTS = machine.REPO / "docs/results"


class Committed(unittest.TestCase):
    HOW = "make it anew: python3 bench/results.py --render"

    def test_the_readme_is_what_the_rows_say(self):
        self.assertEqual((RESULTS / "README.md").read_text(encoding="utf-8"),
                         report.text(RESULTS, results.planned), self.HOW)

    def test_the_benchmarks_are_what_the_rows_say(self):
        self.assertEqual((machine.REPO / "BENCHMARKS.md").read_text(encoding="utf-8"), benchmarks.text(RESULTS),
                         self.HOW)


class Targets(unittest.TestCase):
    def test_every_target_has_a_row_to_meet_it(self):
        made = {(case.name, position) for case, positions in endurance.CONTEXTS for position in positions}
        self.assertEqual(made, {(model, position) for model, targets in benchmarks.SHARES.items()
                                for position in targets})
        self.assertEqual(set(benchmarks.CONTEXTS), {position for _, position in made})
        for case, positions in endurance.CONTEXTS:
            self.assertLessEqual(max(positions) + comparing.STEPS, case.max_seq)
        self.assertLessEqual(set(benchmarks.SPEEDUPS), set(comparing.MODELS))


class Tables(unittest.TestCase):
    def setUp(self):
        self.dir = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.store = report.Store(self.dir / "h200.json")

    def lines(self, start):
        return [line for line in benchmarks.text(self.dir).splitlines() if line.startswith(start)]

    def context(self, model, position, share, **more):
        us = {"median": 100 / share, "p10": 1, "p90": 999}
        self.store.put(row(f"contexts/{model}-{position}", model=model, position=position, latency_us=us,
                           ceiling_us=us | {"median": 100.0},
                           share_of_ceiling=share, gbs=4000.4, **more), HERE)

    def test_shares_are_held_to_the_targets_unrounded(self):
        self.context("llama-3.2-1b", 128, 0.94, read_gbs=4321.0)
        self.context("llama-3.2-1b", 8192, 0.87996)
        self.context("smollm2-135m", 128, 0.5)
        self.store.put(row("contexts/llama-3.2-1b-32752", False, model="llama-3.2-1b", position=32752), HERE)
        first, second, third, *_ = self.lines("| llama-3.2-1b |")
        self.assertEqual(first, "| llama-3.2-1b | 128 | 106.4 | 1.0 to 999.0 | 100.0 | 94.0 % | ≥ 94 % | yes | 4000 | "
                         "4321 | 92.6 % | A | `python3 x` |")
        self.assertIn("| 8,192 | 113.6 | 1.0 to 999.0 | 100.0 | 88.0 % | ≥ 88 % | **no**, short by 0.004 points | 4000 "
                      "|  |  |", second)
        self.assertIn("| 32,768 | **FAIL**: a\\|b is wrong (and 1 more) |", third)
        self.assertIn("| 50.0 % | none; 200 µs would be remarkable |  |", self.lines("| smollm2")[0])
        self.assertEqual(len([line for line in self.lines("| llama-3.1-8b") if "not measured" in line]), 3)

    def test_pytorch(self):
        us = {"median": 250.0, "p10": 249, "p90": 251}
        engines = {"amkc": {"us": us | {"median": 100.0}, "times_amkc": 1.0, "share_of_ceiling": 0.9, "rms_error": 1e-3,
                            "max_error": 1e-2},
                   "eager": {"us": us, "times_amkc": 2.5, "share_of_ceiling": 0.4, "attention": "sdpa",
                             "rms_error": 9e-4}, "compile": {"not_run": "too slow"}}
        self.store.put(row("compare/a", None, model="llama-3.2-1b", position=128, engines=engines), HERE)
        self.store.put(row("compare/b", False, model="llama-3.1-8b"), HERE)
        lines = self.lines("| llama-3.2-1b | 128 |")[1:]
        self.assertIn("| amkc | 100.0 | 249.0 to 251.0 | 1.00 |  |  | 90.0 % | 1.00e-03 | 1.00e-02 |", lines[0])
        self.assertIn("| transformers' step in a CUDA graph, attention sdpa | 250.0 | 249.0 to 251.0 | 2.50 | ≥ 2.5 | "
                      "yes | 40.0 % |", lines[1])
        self.assertIn("| not run: too slow |  |  | ≥ 1.8 |", lines[2])
        self.assertEqual(self.lines("Nearer to fp32"),
                         ["Nearer to fp32 than amkc, by the RMS error: transformers' step in a CUDA graph, "
                          "llama-3.2-1b at 128."])
        engines["eager"]["rms_error"] = 1e-3
        self.store.put(row("compare/a", None, model="llama-3.2-1b", position=128, engines=engines), HERE)
        self.assertEqual(self.lines("Nearer to fp32"), [])
        self.assertIn("**FAIL**", self.lines("| llama-3.1-8b |  |")[-1])

    def test_pytorch_with_quantised_matrices(self):
        us = {"median": 250.0, "p10": 249, "p90": 251}
        engines = {"amkc": {"form": "f", "us": us | {"median": 100.0}, "times_amkc": 1.0, "share_of_ceiling": 0.9,
                            "bytes_per_token": 4e9, "gbs": 4000.4, "bits_per_weight": 4.25},
                   "compile": {"form": "g", "us": us, "times_amkc": 2.5, "share_of_ceiling": 0.36,
                               "bytes_per_token": 4.1e9, "gbs": 1640.0, "bits_per_weight": 4.375, "rms_error": 9e-4}}
        self.store.put(row("compare/d", model="llama-3.1-8b", position=128, weights="int8", engines=engines), HERE)
        self.store.put(row("compare/e", None, model="llama-3.1-8b", position=128, weights="int4:g128:sym",
                           engines={"compile": {"not_run": "too slow"}}), HERE)
        self.store.put(row("compare/f", False, model="llama-3.1-8b", weights="int4:g128:sym"), HERE)
        ours, theirs, absent, failed = self.lines("| llama-3.1-8b |")[-4:]
        self.assertEqual(ours, "| llama-3.1-8b | 128 | int8 | amkc: f | 100.0 | 249.0 to 251.0 | 1.00 | 4000.0 | "
                         "4000 | 4.250 | 90.0 % |  | A | `python3 x` |")
        self.assertEqual(theirs, "| llama-3.1-8b | 128 | int8 | transformers' step through torch.compile, in a CUDA "
                         "graph: g | 250.0 | 249.0 to 251.0 | 2.50 | 4100.0 | 1640 | 4.375 | 36.0 % | "
                         "9.00e-04 | A | `python3 x` |")
        self.assertIn("| not run: too slow |", absent)
        self.assertIn("**FAIL**", failed)
        text = benchmarks.text(self.dir)
        self.assertIn("PyTorch's values, and amkc's to the plain kernels", text)
        self.assertNotIn("int8", text[text.index("### PyTorch\n"):text.index("### PyTorch, quantised")],
                         "those in bf16 have a table of their own")

    def test_ablations_side_by_side(self):
        fast = [{"findings": [], "latency_us": {"median": us}, "ceiling_us": {"median": 90.0}, "share_of_ceiling": 0.9}
                for us in (100.0, 101.0, 99.0)]
        slow = [r | {"latency_us": {"median": 2 * r["latency_us"]["median"]}} for r in fast]
        v = ablations.VARIANTS[0]
        for position in (128, 2032):
            made = ablations.judge_ablation(fast, slow, v, position)
            self.store.put(row(f"ablations/{position}") | made, HERE)
        made = ablations.judge_ablation(fast, slow[:2] + [{"findings": ["a stall"]}], ablations.VARIANTS[1], 128)
        self.store.put(row("ablations/x") | made, HERE)
        text = benchmarks.text(self.dir)
        self.assertIn("| as amkc makes it | 100.0 | 100.0 |", text)
        self.assertIn(f"| {v.what} | 200.0 (2.000, spread 0.000) | 200.0 (2.000, spread 0.000) |", text)
        self.assertIn(f"| {ablations.VARIANTS[1].what} | **FAIL**: copies-1: a stall | not measured |", text)
        self.assertNotIn("where it does not say otherwise", text)
        self.store.put(row("ablations/y") | ablations.judge_ablation(fast, slow, ablations.VARIANTS[2], 128),
                       HERE | {"amkc": "another"})
        text = benchmarks.text(self.dir)
        self.assertIn(", on A where it does not say otherwise;", text)
        self.assertIn(f"| {ablations.VARIANTS[2].what} (on B) | 200.0", text)

    def test_a_second_machine_has_a_section_without_targets(self):
        self.context("llama-3.2-1b", 128, 0.94)
        self.store = report.Store(self.dir / "h100.json")
        self.context("llama-3.2-1b", 128, 0.9)
        text = benchmarks.text(self.dir)
        first, second = text.index("## h200"), text.index("## h100")
        self.assertLess(first, second, "what was aimed for was aimed for on the h200")
        self.assertIn("| 94.0 % | ≥ 94 % | yes |", text[first:second])
        self.assertNotIn("≥", text[second:])
        self.assertIn("| llama-3.2-1b | 128 | 111.1 | 1.0 to 999.0 | 100.0 | 90.0 % | 4000 |", text[second:])
        self.assertIn("Not measured on this GPU: PyTorch; PyTorch, quantised matrices; What each feature is worth; "
                      "Eight minutes of continuous decoding.", text[second:])
        self.assertEqual(text.count("Context 32,768 is"), 1, "explanations stand once")

    def test_soak_and_nothing(self):
        self.assertEqual(benchmarks.text(self.dir).count("Not measured."), 0, "no machine, no tables")
        us = {"first_tenth": 600.0, "last_tenth": 601.0, "longest": 700.0}
        self.store.put(row("soak/a", free=700_000, passes=342, seconds=480.2, latency_us=us), HERE)
        text = benchmarks.text(self.dir)
        self.assertEqual(text.count("Not measured."), 3)
        self.assertIn("| m | 700000 | 342 | 480 | 600.0 | 601.0 | 700.0 | pass | A | `python3 x` |", text)

    def test_rows_have_as_many_cells_as_titles(self):
        self.test_shares_are_held_to_the_targets_unrounded()
        self.test_pytorch()
        self.test_pytorch_with_quantised_matrices()
        width = None
        for line in benchmarks.text(self.dir).replace("\\|", "").splitlines():
            if not line.startswith("|"):
                width = None
            elif width is None:
                width = line.count("|")
            self.assertTrue(width is None or line.count("|") == width, line)


if __name__ == "__main__":
    unittest.main()
