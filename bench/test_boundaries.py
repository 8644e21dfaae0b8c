"""Tests of sections boundaries and timelines with an amkc and a device that only look the part: no GPU, numpy alone."""

import sys
import unittest
from dataclasses import replace
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parent))

import boundaries
import endurance
import looping
import results
import test_workshop
import timelines
from workshop import Budget, Case, StepFailed, Workshop

SMALL = Case("testdata/models/zoo/llama-gqa", "bf16")
# device turns: a build with barriers takes longer, and passes of sequences longer still.
DEVICE = """\
    #!{python} -IS
    import json, pathlib, sys
    here, args = pathlib.Path(__file__).parent, sys.argv[1:]
    def after(flag): return args[args.index(flag) + 1]
    with open(here / "calls", "a") as f: f.write(" ".join(args) + "\\n")
    for p in after("--positions").split(","):
        for i in range(int(after("--rounds"))):
            for build in [a for a in args if "/" in a]:
                us = 100.0 + int(p) / 10 + i + (50 if "barrier" in build else 0)
                report = {{"latency_us": {{"median": us}}, "ceiling_us": {{"median": 90.0}},
                          "drain_us": {{"median": 9.0}}, "bytes_per_token": 1e6, "read_gbs": 3000.0,
                          "parts": [] if (here / "whole").exists() else [
                              {{"of": "layer", "launches": 4, "latency_us": {{"median": us * 1.5}}}},
                              {{"of": "stage", "launches": 14, "latency_us": {{"median": us * 2}}}}],
                          "passes": [
                              {{"rows": 1, "sequences": 8, "latency_us": {{"median": 2 * us}},
                               "ceiling_us": {{"median": 180.0}}}}]}}
                turn = {{"build": build, "position": int(p), "round": i, "report": report}}
                if (here / "fails").exists(): turn = turn | {{"error": "no memory"}}
                print(json.dumps(turn))
"""


class Rows(test_workshop.Fake):
    def setUp(self):
        super().setUp()
        self.script("device", DEVICE)
        tools = results.machine.Tools(self.tools_dir)
        self.shop = Workshop(tools, self.dir / "work", "h100", 1, Budget())
        self.addCleanup(self.shop.close)

    def rows(self, **more):
        what = boundaries.Measured(SMALL, (1000, 2000), **more)
        m = boundaries.Measurement(what)
        self.shop.planned = {boundaries.row_id(what, p) for p in what.positions}
        return [m.row(self.shop, p) for p in what.positions]

    def calls(self):
        return [line for line in (self.tools_dir / "calls").read_text().splitlines() if line.startswith("turns")]

    def test_both_builds_take_turns_at_all_positions(self):
        first, second = self.rows()
        self.assertEqual(len(self.calls()), 1)
        self.assertIn("--positions 1000,2000 --rounds 2", self.calls()[0])
        self.assertEqual((first["loop_us"], first["barriers_us"], first["ceiling_us"]), (200.5, 250.5, 90.0))
        self.assertEqual((second["loop_us"], second["interleaved"], second["sequences"]), (300.5, True, 1))
        self.assertAlmostEqual(first["gain"], 250.5 / 200.5)
        self.assertEqual(first["drain_us"], 9.0)
        self.assertEqual(first["launches"], {"layer": {"launches": 4, "us": 1.5 * 200.5, "gain": 1.5, "alone": True},
                                             "stage": {"launches": 14, "us": 2 * 200.5, "gain": 2.0, "alone": True}})
        loop = next(word for word in self.calls()[0].split() if "barrier" not in word and "/work/" in word)
        self.assertIn("parts-1", loop)
        self.assertEqual((Path(loop) / "measure.fatbin").read_text(), "-DAMK_PARTS=1")
        self.assertEqual((Path(loop) / "megakernel.fatbin").read_text(), "built", "that of the build")

    def test_a_build_without_its_parts_fails(self):
        (self.tools_dir / "whole").touch()
        self.assertEqual(self.rows()[0]["findings"], ["no launches for each layer and stage were timed"])

    def test_large_builds_are_opened_one_after_the_other(self):
        first, _ = self.rows(together=False)
        self.assertEqual([("barrier" in c, c.count("/work/")) for c in self.calls()],
                         [(False, 1), (True, 1), (False, 1), (True, 1)])
        self.assertEqual((first["loop_us"], first["barriers_us"], first["interleaved"]), (200.0, 250.0, False))

    def test_of_several_sequences_the_pass_counts(self):
        what = boundaries.Measured(replace(SMALL, sequences=8), (1000,))
        row = boundaries.Measurement(what).row(self.shop, 1000)
        self.assertEqual((row["loop_us"], row["barriers_us"], row["ceiling_us"]), (401.0, 501.0, 180.0))
        self.assertNotIn("drain_us", row)
        self.assertNotIn("launches", row)

    def test_what_could_not_be_measured_is_a_finding(self):
        (self.tools_dir / "fails").touch()
        self.assertEqual(self.rows()[0]["findings"], ["no memory"] * 4)

    def test_a_second_build_begins_with_the_weights_of_the_first(self):
        self.shop.finish(SMALL)
        (self.shop.work / SMALL.key / "weights.safetensors").write_text("packed")
        with mock.patch.object(self.shop, "execute", side_effect=StepFailed("stop")):
            with self.assertRaises(StepFailed):
                self.shop.finish(replace(SMALL, knobs=looping.BARRIERS))
        begun = self.shop.work / replace(SMALL, knobs=looping.BARRIERS).key
        weights, fatbin = begun / "weights.safetensors", begun / "megakernel.fatbin"
        self.assertEqual(weights.read_text(), "packed")
        self.assertEqual(weights.stat().st_nlink, 2)
        self.assertEqual(fatbin.stat().st_nlink, 1, "nvcc writes into it")


class Plan(unittest.TestCase):
    def test_builds_of_one_name_are_one_build(self):
        seen = {}
        for task in results.tasks([], []):
            if task.section == "first_answer":  # which compiles checkpoints of a hub's cache by itself
                continue
            for case, _ in ((task.case, ()), *task.also):
                if case.seed is not None:
                    self.assertEqual(seen.setdefault(case.key, case), case, task.id)

    def test_positions_fit(self):
        for what in boundaries.MEASURED:
            self.assertLessEqual(max(what.positions) + 16, what.case.max_seq)
        self.assertLessEqual(timelines.POSITION + 16, endurance.LONG_POSITIONS)


class Timelines(unittest.TestCase):
    def trace(self, dropped=0):
        def span(process, sm, name, kind, start, duration):
            return {"ph": "X", "pid": process, "tid": sm, "name": name, "cat": kind, "ts": start, "dur": duration}
        events = [{"ph": "M", "pid": 1, "tid": 1, "name": "thread_name"}]
        for sm in (1, 2):
            events += [span(1, sm, "L07.o", "compute", 0.0, 4.0), span(1, sm, "L08.qkv", "exchange wait", 4.0, 1.0),
                       span(1, sm, "L11.down", "signal", 5.0, 3.0), span(1, sm, "lm_head", "compute", 8.0, 2.0)]
        events += [span(2, 1, "L08.qkv", "slot wait", 4.5, 1.0), span(2, 2, "lm_head", "slot wait", 20.0, 1.0)]
        return {"traceEvents": events, "otherData": {"dropped": dropped, "latency_us": 11.0}}

    def test_shares_and_the_stream(self):
        got = timelines.of_trace(self.trace())
        self.assertEqual((got["step_us"], got["recorded_us"]), (10.0, 11.0))
        self.assertEqual(got["shares"], {"exchange wait": 0.1, "compute": 0.6, "signal": 0.3})
        self.assertEqual(got["producer_waits"], 0.05)
        self.assertEqual(got["copying"], [0.75, 0.75, 1.0, 1.0])

    def test_an_incomplete_trace_is_refused(self):
        with self.assertRaisesRegex(StepFailed, "lacks 3 spans"):
            timelines.of_trace(self.trace(3))
        other = self.trace()
        other["traceEvents"] = [e for e in other["traceEvents"] if e["name"][:2] not in ("L0", "L1")]
        with self.assertRaisesRegex(StepFailed, "nothing of layers"):
            timelines.of_trace(other)

    def test_layers_are_read_from_names(self):
        self.assertEqual([timelines.layer_of(n) for n in ("L03.qkv", "lm_head", "L100.o", "Lx.y")], [3, -1, 100, -1])


if __name__ == "__main__":
    unittest.main()
