"""Tests of what is measured interleaved: sections ablations and barriers, with tools that only look like amkc. numpy
alone."""

import json
import sys
import unittest
from dataclasses import replace
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parent))

import ablations
import accuracy
import test_workshop
from turns import Entrant, judge_turns
from workshop import Case, OutOfTime, StepFailed

# device turns, for which a token takes longer the longer the name of its build is, and in the second round on a slower
# GPU.
DEVICE = """\
    #!{python} -IS
    import json, pathlib, sys
    args = sys.argv[1:]
    with open(pathlib.Path(__file__).parent / "calls", "a") as f: f.write("turns\\n")
    positions, rounds = args[args.index("--positions") + 1], int(args[args.index("--rounds") + 1])
    for p in positions.split(","):
        for r in range(rounds):
            for d in args[args.index("--launches") + 2:]:
                t = {{"build": d, "position": int(p), "round": r}}
                us = {{"median": (100.0 + len(pathlib.Path(d).name)) * (2 if r == 1 else 1)}}
                if "flagged" in d: t["error"] = "a stall"
                else: t["report"] = {{"latency_us": us, "ceiling_us": us, "share_of_ceiling": 1.0, "read_gbs": 4000}}
                print(json.dumps(t))
    sys.exit(1)
"""
MODEL = "llama-3.2-1b"
BASE = "llama-3.2-1b-bf16-seed1"


class Ablations(test_workshop.Fake):
    def setUp(self):
        super().setUp()
        self.script("device", DEVICE)

    def test_rows_of_a_model_come_from_one_measurement(self):
        code, out = self.results("--only", f"ablations/{MODEL}-copies-1-*", "--only",
                                 f"ablations/{MODEL}-one-token-2032",
                                 "--only", f"ablations/{MODEL}-bulk-copy-off-128")
        self.assertEqual(code, 0, out)
        rows = self.rows()
        self.assertEqual(len(rows), 4)
        self.assertEqual(self.calls().count("turns"), 1)
        row = rows[f"ablations/{MODEL}-copies-1-128"]
        base, copies = 100.0 + len(BASE), 100.0 + len(BASE + "-exchange.copies=1")
        self.assertEqual((row["us"], row["default_us"], row["round_us"]), (copies, base, [copies, 2 * copies, copies]))
        self.assertAlmostEqual(row["ratio"], copies / base)
        self.assertAlmostEqual(row["spread"], 0, msg="the second round is slower for all")
        self.assertIn("device turns --positions 128,2032 --rounds 3", row["steps"][-1])
        self.assertFalse([s for s in row["steps"][:-1] if "BULK_COPY" in s], "builds of other rows")
        self.assertIn("| one copy of each exchanged vector instead of two |",
                      (self.dir / "out" / "fake.md").read_text())
        self.assertEqual(rows[f"ablations/{MODEL}-one-token-2032"]["us"], base + 2, "the same build, :1")

    def test_what_fails_costs_its_own_row(self):
        code, out = self.results("--only", f"ablations/{MODEL}-flagged-off-128", "--only",
                                 f"ablations/{MODEL}-splits-16-128")
        self.assertEqual(code, 1)
        row = self.rows()[f"ablations/{MODEL}-flagged-off-128"]
        self.assertEqual((row["passed"], row["findings"][0]), (False, "flagged-off: a stall"))
        self.assertNotIn("ratio", row)
        self.assertTrue(self.rows()[f"ablations/{MODEL}-splits-16-128"]["passed"])

    def test_a_build_that_is_refused_costs_its_own_row(self):
        self.script("amkc", test_workshop.AMKC.replace('if (here / "broken").exists()',
                                                       'if any("copies" in a for a in args)'))
        code, out = self.results("--only", f"ablations/{MODEL}-copies-1-128", "--only",
                                 f"ablations/{MODEL}-splits-16-128")
        row = self.rows()[f"ablations/{MODEL}-copies-1-128"]
        self.assertIn("it is broken", row["findings"][0])
        self.assertEqual((row["passed"], row["position"], row["variant"]), (False, 128, "copies-1"))
        self.assertTrue(self.rows()[f"ablations/{MODEL}-splits-16-128"]["passed"])

    def test_nothing_is_measured_against_a_default_that_is_refused(self):
        self.script("amkc", test_workshop.AMKC.replace('if (here / "broken").exists()', 'if "--config" not in args'))
        code, _ = self.results("--only", f"ablations/{MODEL}-copies-1-128", "--only",
                               f"ablations/{MODEL}-splits-16-128")
        self.assertEqual(code, 1)
        self.assertEqual(["it is broken" in r["findings"][0] for r in self.rows().values()], [True, True])

    def test_a_measurement_that_fails_costs_all_of_its_rows_and_is_not_repeated(self):
        with mock.patch.object(ablations, "take_turns", mock.Mock(side_effect=RuntimeError("no such GPU"))) as turns:
            code, _ = self.results("--only", f"ablations/{MODEL}-copies-1-128", "--only",
                                   f"ablations/{MODEL}-splits-16-128")
        self.assertEqual((code, turns.call_count), (1, 1))
        self.assertEqual([r["findings"] for r in self.rows().values()],
                         [[f"{v}: RuntimeError: no such GPU"] for v in ("copies-1", "splits-16")])

    def test_a_measurement_without_the_time_is_left(self):
        with mock.patch.object(ablations, "take_turns", mock.Mock(side_effect=OutOfTime)):
            code, out = self.results("--only", f"ablations/{MODEL}-copies-1-128")
        self.assertEqual((code, self.rows()), (1, {}))
        self.assertIn("1 rows are left", out)

    def test_every_variant_is_another_build_or_launch(self):
        made = {(v.knobs, v.defines, v.steps) for v in (ablations.DEFAULT, *ablations.VARIANTS)}
        self.assertEqual(len(made), 1 + len(ablations.VARIANTS))

    def test_the_spread_is_that_of_ratios(self):
        def rounds(*us):
            return [{"findings": [], "latency_us": {"median": u}, "ceiling_us": {"median": 1}, "share_of_ceiling": 1}
                    for u in us]

        row = ablations.judge_ablation(rounds(100, 200, 110), rounds(101, 204, 110), ablations.VARIANTS[0], 128)
        self.assertAlmostEqual(row["ratio"], 1.01)
        self.assertAlmostEqual(row["spread"], 0.02)


class Builds(test_workshop.Fake):
    def test_knobs_outside_the_tiling(self):
        case = Case("a/b", "bf16", knobs=(("", "sm_assignment", "contiguous"), ("ring", "in_flight", 1)))
        self.assertEqual(json.loads(case.config()), {"sm_assignment": "contiguous",
                                                     "tiling": {"ring": {"in_flight": 1}}})
        self.assertEqual(case.key, "b-bf16-sm_assignment=contiguous-ring.in_flight=1")

    def test_equal_weights_are_one_file(self):
        shop = self.workshop()
        a, b = shop.finish(self.case), shop.finish(replace(self.case, knobs=accuracy.UNROLLED))
        self.assertEqual(*((d / "weights.safetensors").stat().st_ino for d in (a, b)))
        self.assertEqual((b / "weights.safetensors").read_text(), "weights")

    def test_definitions_change_every_kernel(self):
        shop = self.workshop()
        base = shop.finish(self.case)
        for name in ("measure", "reference"):
            (base / f"{name}.fatbin").write_text("built")
        copy = shop.finish(self.case, ("AMK_BULK_COPY=0",))
        self.assertEqual([(copy / f"{n}.fatbin").read_text() for n in ("megakernel", "measure", "reference")],
                         ["-DAMK_BULK_COPY=0"] * 3)
        self.assertEqual((base / "measure.fatbin").read_text(), "built")


class Turns(unittest.TestCase):
    def test_turns_that_were_not_taken_are_findings(self):
        line = json.dumps({"build": "a:1", "position": 7, "round": 0,
                           "report": {"latency_us": {"median": 1}, "samples_us": [1]}})
        got = judge_turns({"x": Entrant("a", 1)}, (7,), 2, line + "\n", "device: error: the GPU is gone\n")
        self.assertEqual(got, {("x", 7): [{"findings": [], "latency_us": {"median": 1}},
                                          {"findings": ["not measured: device: error: the GPU is gone"]}]})
        with self.assertRaisesRegex(StepFailed, "the GPU is gone"):
            judge_turns({"x": Entrant("a")}, (7,), 2, "", "device: error: the GPU is gone\n")


if __name__ == "__main__":
    unittest.main()
