"""Tests of what bench/results.py decides and writes, without a GPU: python3 -m unittest discover bench (numpy
alone)."""

import json
import os
import sys
import tempfile
import unittest
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))

import accuracy
import criteria
import endurance
import machine
import report
import results
from workshop import NotRun, StepFailed

os.chdir(machine.REPO)

# Two ids compete; the second row is closer than the first. More rows than criteria.ROWS follow.
REF = np.zeros((150, 8), np.float32)
REF[:, 3] = 2
REF[:, 5] = 1
REF[1, 5] = 1.9


def off(*changes):
    got = REF.copy()
    for position, i, by in changes:
        got[position, i] += np.float32(by)
    return got


class Criteria(unittest.TestCase):
    def test_distance_is_over_all_positions(self):
        rng = np.random.default_rng(1)
        got = REF + rng.normal(size=REF.shape).astype(np.float32)
        error = got.astype(np.float64) - REF
        d = criteria.distance(got, REF)
        self.assertAlmostEqual(d.rms, np.sqrt(np.mean(error**2)), places=12)
        self.assertEqual(d.max, np.abs(error).max())
        self.assertEqual(abs(error[d.at]), d.max)
        with self.assertRaisesRegex(ValueError, "same"):
            criteria.distance(got[:3], REF)

    def test_fp32_within_the_limit(self):
        row = criteria.judge_fp32(off((149, 0, 9.9e-5)), REF)
        self.assertEqual((row["passed"], row["findings"], row["positions"], row["argmax_wrong"]), (True, [], 150, 0))
        row = criteria.judge_fp32(off((149, 7, -1.1e-4)), REF)
        self.assertFalse(row["passed"])
        self.assertIn("position 149, id 7", row["findings"][0])

    def test_fp32_may_be_as_far_as_the_reference_from_itself(self):
        got, asked = off((149, 7, -1.1e-4)), []

        def exact(error):
            return lambda: asked.append(error) or off((3, 4, error))

        row = criteria.judge_fp32(got, REF, exact(8e-5))
        self.assertTrue(row["passed"], row["findings"])
        self.assertAlmostEqual(row["transformers_max_error"], 8e-5, places=7)
        self.assertFalse(criteria.judge_fp32(got, REF, exact(7e-5))["passed"])
        asked.clear()
        self.assertTrue(criteria.judge_fp32(off((149, 0, 9.9e-5)), REF, exact(1e-3))["passed"])
        self.assertEqual(asked, [], "who is within the limit need not ask")

    def test_fp32_wants_the_same_choice_however_close(self):
        ref = off((7, 5, 1 - 4e-5))
        got = off((7, 5, 1 + 4e-5))
        row = criteria.judge_fp32(got, ref)
        self.assertEqual((row["passed"], row["argmax_wrong"]), (False, 1))
        self.assertRegex(row["findings"][0], "position 7: argmax 5 instead of 3")

    def test_nothing_but_numbers_passes(self):
        for bad in (np.nan, np.inf, -np.inf):
            got = off((100, 2, bad))
            for row in (criteria.judge_fp32(got, REF), criteria.judge_half(got, off((0, 0, 0.5)), REF)):
                self.assertFalse(row["passed"])
                self.assertIsNone(row["max_error"])
                self.assertIn("position 100, id 2", " ".join(row["findings"]))
                json.dumps(row, allow_nan=False)

    def test_half_is_measured_against_the_rival(self):
        rival = off((0, 0, 0.1), (9, 0, 0.1))
        row = criteria.judge_half(off((0, 0, 0.125)), rival, REF)
        self.assertTrue(row["passed"])
        self.assertAlmostEqual(row["max_ratio"], 1.25, places=5)
        self.assertAlmostEqual(row["rms_ratio"], 1.25 / 2**0.5, places=5)
        self.assertEqual(row["argmax_decided"], 149, "at position 1 the margin is 0.1")
        row = criteria.judge_half(off((0, 0, 0.1), (1, 0, 0.1), (2, 0, 0.1)), rival, REF)
        self.assertRegex(row["findings"][0], "^RMS error")
        row = criteria.judge_half(off((0, 0, 0.151)), rival + 0.0, REF)
        self.assertFalse(row["passed"])
        self.assertRegex(row["findings"][-1], "^max error")

    def test_half_may_choose_otherwise_where_it_is_undecided(self):
        rival = off((0, 0, 0.2), (9, 0, 0.2))
        undecided = off((1, 5, 0.15))
        self.assertTrue(criteria.judge_half(undecided, rival, REF)["passed"])
        rival = off(*((p, 0, 0.04) for p in range(150)))
        row = criteria.judge_half(undecided, rival, REF)
        self.assertEqual((row["argmax_decided"], row["argmax_wrong"]), (150, 1))
        self.assertFalse(row["passed"])

    def test_a_perfect_rival_can_only_be_equalled(self):
        self.assertTrue(criteria.judge_half(REF, REF, REF)["passed"])
        row = criteria.judge_half(off((0, 0, 1e-3)), REF, REF)
        self.assertEqual((row["passed"], row["max_ratio"]), (False, None))

    def test_the_lowest_id_wins_a_tie(self):
        self.assertEqual(list(criteria.choices(np.array([[1, 2, 2], [0, 0, 0]], np.float32))), [1, 0])
        self.assertEqual(list(criteria.margins(np.array([[1, 2, 2], [4, 0, 1]], np.float32))), [0, 3])

    def test_greedy(self):
        self.assertEqual(criteria.judge_greedy([1, 2], np.array([1, 2])), [])
        self.assertIn("token 1 of 2 is [7] instead of [2]", criteria.judge_greedy([1, 7], [1, 2])[0])
        self.assertIn("token 1 of 2 is [] instead of [2]", criteria.judge_greedy([1], [1, 2])[0])


HERE = {"gpu": "NVIDIA H200", "driver": "580", "amkc": "dev (SHA-256 1)"}


def row(task_id, passed=True, **more):
    section = task_id.split("/")[0]
    findings = [] if passed is not False else ["a|b\nis wrong", "so is c"]
    return {"section": section, "id": task_id, "model": "m", "dtype": "bf16", "passed": passed, "findings": findings,
            "command": "python3 x", "steps": []} | ({"not_run": "no tool"} if passed is None else {}) | more


class Report(unittest.TestCase):
    def setUp(self):
        self.dir = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.path = self.dir / "h200.json"

    def test_rows_survive_and_are_replaced(self):
        store = report.Store(self.path)
        store.put(row("shapes/a"), HERE)
        store.put(row("fixtures/b", False), HERE)
        store.put(row("fixtures/c", max_error=1e-5), HERE | {"driver": "581"})
        again = report.Store(self.path)
        self.assertEqual([r["id"] for r in again.ordered()], ["fixtures/b", "fixtures/c", "shapes/a"])
        self.assertEqual([again.rows[i]["environment"] for i in ("fixtures/b", "fixtures/c", "shapes/a")],
                         ["A", "B", "A"])
        again.put(row("fixtures/b"), HERE)
        self.assertTrue(report.Store(self.path).rows["fixtures/b"]["passed"])
        self.assertEqual(sorted(p.name for p in self.dir.iterdir()), ["h200.json"])

    def test_environments_that_no_row_has_are_dropped(self):
        store = report.Store(self.path)
        store.put(row("bench/a"), HERE)
        store.put(row("bench/a"), HERE | {"amkc": "2"})
        self.assertEqual(list(report.Store(self.path).environments), ["B"])
        store = report.Store(self.path)
        store.put(row("bench/b"), HERE | {"amkc": "3"})
        self.assertEqual(len(report.Store(self.path).environments), 2, "a letter is not given twice")

    def test_only_what_passed_with_the_same_amkc_is_done(self):
        store = report.Store(self.path)
        store.put(row("bench/a"), HERE)
        store.put(row("bench/b", False), HERE)
        store.put(row("bench/c", None), HERE)
        self.assertEqual([store.done(i, HERE) for i in ("bench/a", "bench/b", "bench/c", "bench/d")],
                         [True, False, False, False])
        self.assertTrue(store.done("bench/a", HERE | {"driver": "581"}))
        self.assertFalse(store.done("bench/a", HERE | {"amkc": "2"}))
        self.assertFalse(store.done("bench/a", HERE | {"gpu": "L4"}))

    def test_foreign_files_are_refused(self):
        self.path.write_text('{"schema": "amkc.results/2"}')
        with self.assertRaisesRegex(ValueError, "amkc.results/1"):
            report.Store(self.path)

    def page(self, planned=()):
        return report.page(report.Store(self.path), planned)

    def test_what_other_tools_have_measured_is_not_shown(self):
        report.Store(self.path).put(row("fixtures/a"), HERE)
        (self.dir / "other.json").write_text('{"rows": []}')
        self.assertEqual(report.render(self.dir), [self.dir / "h200.md"])
        (self.dir / "other.json").write_text('{"schema": "amkc.results/2"}')
        with self.assertRaisesRegex(ValueError, "amkc.results/1"):
            report.render(self.dir)

    def test_what_was_never_made_is_counted(self):
        report.Store(self.path).put(row("fixtures/a"), HERE)
        self.assertIn("\nPlanned and never made: 1 of `fixtures`, 2 of `soak`.\n",
                      self.page(["fixtures/a", "fixtures/b", "soak/b", "soak/c"]))
        self.assertNotIn("never made", self.page(["fixtures/a"]))

    def test_what_it_was_made_with(self):
        store = report.Store(self.path)
        store.put(row("fixtures/a"), HERE)
        store.put(row("fixtures/b"), HERE | {"driver": "581"})
        store.put(row("fixtures/c"), HERE | {"amkc": "2"})
        self.assertIn("\nMade with: gpu NVIDIA H200; driver 580 or 581; builds of amkc: 2.\n", self.page())

    def test_frozen_rows_are_kept_and_not_shown(self):
        store = report.Store(self.path)
        store.put(row(f"{report.FROZEN[0]}/a"), HERE)
        store.put(row("bench/a"), HERE)
        self.assertEqual(set(report.Store(self.path).rows), {f"{report.FROZEN[0]}/a", "bench/a"})
        self.assertIn("\n1 rows pass, ", self.page())

    def test_rows_of_earlier_defaults_are_counted(self):
        store, last = report.Store(self.path), len(report.DEFAULTS)
        for n, more in enumerate(({"position": 600}, {"position": 600, "defaults": last - 1}, {"position": 511},
                                  {"position": 600, "defaults": last}, {"position": 600, "sequences": 8}, {})):
            store.put(row(f"bench/{n}", **more), HERE)
        self.assertIn("\n2 rows were measured with earlier defaults", self.page())

    def test_the_table_hides_nothing(self):
        store = report.Store(self.path)
        store.put(row("fixtures/a", max_error=1.234e-5, rms_error=1e-6, max_ratio=None, argmax_wrong=0,
                      argmax_decided=7, positions=9), HERE)
        store.put(row("fixtures/b", False), HERE)
        store.put(row("sanitizer/c", None), HERE)
        times = {"median": 12.34, "p10": 12, "p90": 13}
        store.put(row("bench/d", position=0, latency_us=times, ceiling_us=times, gbs=900.0, share_of_ceiling=0.9), HERE)
        text = self.page()
        for want in ("2 rows pass, 1 fail, 1 were not run",
                     "| 2 | [Trained and tiny checkpoints](#trained-and-tiny-checkpoints) | "
                     "`python3 bench/results.py --section fixtures` |",
                     "| a | 1.23e-05 | 1.00e-06 |  |  | 0 of 7 | 9 | pass |",
                     "| b |  |  |  |  |  |  | **FAIL**: a\\|b is wrong (and 1 more) |", "| not run: no tool |",
                     "| d | 0 | 12.3 | 12.0 to 13.0 | 12.3 | 90.0% | 900 |  |\n"):
            self.assertIn(want, text)
        width = None
        for line in text.replace("\\|", "").splitlines():
            width = line.count("|") if line.startswith("|") and width is None else width if line[:1] == "|" else None
            self.assertTrue(width is None or line.count("|") == width, line)

    def test_every_column_shows_something(self):
        """A field that no row has is misspelt."""
        every = [r for store in report.stores(machine.REPO / "docs/results") for r in store.rows.values()]
        for section, (_, _, columns) in report.TABLES.items():
            own = [r for r in every if r["section"] == section]
            for title, form in columns.items():
                self.assertTrue(any(report.cell(form, r) for r in own), f"{section}: {title}")
                self.assertEqual(report.cell(form, {}), "", "of a row that failed early there is nothing")

    def test_values_are_shown_in_words(self):
        made = {"a": True, "b": None, "c": [{"how": "a mask", "n": 2}], "d": {"e": False}}
        self.assertEqual([report.cell(form, made) for form in ("{a}", "{b}", "{c[a mask][n]}", "{d[e]}")],
                         ["yes", "", "2", "no"])


class Configs(unittest.TestCase):
    # Parameters of the published checkpoints, a tied output matrix counted once.
    PARAMETERS = {"smollm2-135m": 134_515_008, "llama-3.2-1b": 1_235_814_400, "llama-3.1-8b": 8_030_261_248}

    def test_shapes_are_those_of_the_published_models(self):
        self.assertEqual([Path(m).name for m, _ in accuracy.SHAPES], list(self.PARAMETERS))
        for model, _ in accuracy.SHAPES:
            c = accuracy.config(model)
            h = c["hidden_size"]
            kv = c["num_key_value_heads"] * c.get("head_dim", h // c["num_attention_heads"])
            layer = 2 * h * h + 2 * h * kv + 3 * h * c["intermediate_size"] + 2 * h
            total = c["num_hidden_layers"] * layer + h + c["vocab_size"] * h * (1 if c["tie_word_embeddings"] else 2)
            self.assertEqual(total, self.PARAMETERS[Path(model).name])
            self.assertGreaterEqual(c["max_position_embeddings"], accuracy.SHAPE_POSITIONS)
            self.assertEqual(c["rms_norm_eps"], 1e-5)

    def test_rope(self):
        ropes = [accuracy.config(m) for m, _ in accuracy.SHAPES]
        self.assertEqual([c["rope_theta"] for c in ropes], [100_000, 500_000, 500_000])
        self.assertIsNone(ropes[0]["rope_scaling"])
        for c, factor in zip(ropes[1:], (32.0, 8.0)):
            self.assertEqual(c["rope_scaling"], {"rope_type": "llama3", "factor": factor, "low_freq_factor": 1.0,
                                                 "high_freq_factor": 4.0, "original_max_position_embeddings": 8192})


class Tasks(unittest.TestCase):
    def test_ids_are_unique_and_selectable(self):
        every = results.tasks(None, None)
        ids = [t.id for t in every]
        self.assertEqual(len(ids), len(set(ids)))
        self.assertEqual(set(results.SECTIONS), set(report.TABLES))
        for t in every:
            self.assertEqual([x.id for x in results.matching(every, [t.id])], [t.id],
                             "its command makes this row alone")
        fixtures = sum(len(accuracy.fixture_dtypes(model)) for model in accuracy.FIXTURES)
        self.assertEqual(len(results.tasks(["fixtures"], None)), fixtures)
        self.assertEqual(accuracy.fixture_dtypes("testdata/models/zoo/llama-gqa"), accuracy.DTYPES)
        for model in accuracy.FIXTURES:
            c = accuracy.text_config(model)
            head = c.get("head_dim") or c["hidden_size"] // c["num_attention_heads"]
            self.assertEqual(accuracy.fixture_dtypes(model), accuracy.DTYPES if head % 4 == 0 else ("fp32",), model)
        self.assertEqual({t.case.dtype for t in results.tasks(["shapes"], ["*8b*"])}, {"bf16", "fp16"})

    def test_models_are_there(self):
        for t in results.tasks(None, None):
            self.assertTrue((machine.REPO / t.case.model / "config.json").exists(), t.id)

    def test_ids_fill_the_context_and_the_vocabulary(self):
        for model in accuracy.FIXTURES:
            ids, where = accuracy.fixture_ids(model)
            c = accuracy.text_config(model)
            self.assertEqual(len(ids), accuracy.fixture_positions(model))
            self.assertTrue(all(0 <= i < c["vocab_size"] for i in ids))
            self.assertIn(".npy[:", where)
            self.assertEqual(accuracy.fixture_ids(model), (ids, where))
        self.assertEqual(accuracy.fixture_positions("testdata/models/zoo/llama-gqa"), 512)
        self.assertEqual(accuracy.fixture_positions("testdata/models/zoo/phi3-short"), 64, "of short factors")
        self.assertEqual(accuracy.fixture_positions("testdata/models/zoo/phi3-long"), 512)
        ids = accuracy.spread_ids(2048, 128256)
        self.assertGreater(len(set(ids)), 1900)
        self.assertEqual(accuracy.spread_ids(5, 128256, first=3), ids[3:8])

    def test_prompts(self):
        self.assertEqual(len(accuracy.prompts("testdata/models/zoo/llama-gqa")[0][0]), 8)
        self.assertEqual(accuracy.prompts("testdata/models/zoo/llama-gqa")[0][1], 40)
        self.assertGreater(len(accuracy.prompts("testdata/models/pycoder-5m")), 1)


class Judges(unittest.TestCase):
    SOAKED = '{"positions":6,"passes":2,"free":12,"forced":12,"difference":"","passed":true,"logits_bytes":9}\n'

    def test_sanitizer(self):
        clean = "========= COMPUTE-SANITIZER\n" + self.SOAKED
        self.assertEqual(endurance.judge_sanitizer("memcheck", 0, clean + "========= ERROR SUMMARY: 0 errors\n", ""),
                         {"passed": True, "findings": [], "errors": 0, "tokens": 24})
        compared = '{"compared": 700, "passed": true}\n========= ERROR SUMMARY: 0 errors\n'
        for tool in ("synccheck", "initcheck"):
            self.assertEqual(endurance.judge_sanitizer(tool, 0, compared, "")["tokens"], 700)
        self.assertTrue(endurance.judge_sanitizer(
            "racecheck", 0, clean + "========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)\n",
            "")["passed"])
        found = "========= Invalid __shared__ write of size 4 bytes\n========= ERROR SUMMARY: 3 errors\n"
        r = endurance.judge_sanitizer("memcheck", 99, clean + found, "")
        self.assertEqual((r["passed"], r["errors"]), (False, 3))
        self.assertIn("Invalid __shared__ write", r["findings"][0])
        found = """========= Uninitialized __global__ memory read of size 16 bytes
=========     at amk_prompt+0x1230
=========     by thread (0,0,0) in block (0,0,0)
========= Uninitialized __global__ memory read of size 16 bytes
=========     at amk_prompt+0x1230
========= ERROR SUMMARY: 19872 errors
========= ERROR SUMMARY: 19772 errors were not printed. Use --print-limit option to adjust the number of printed errors
"""
        r = endurance.judge_sanitizer("initcheck", 99, clean + found, "")
        self.assertEqual(r["errors"], 19872)
        self.assertEqual(r["findings"], ["initcheck found 19872 errors: Uninitialized __global__ memory read of size "
                                         "16 bytes, at amk_prompt+0x1230"])
        r = endurance.judge_sanitizer("memcheck", 2, "========= ERROR SUMMARY: 0 errors\n",
                                      "device: error: a wait took too long\n")
        self.assertIn("too long", r["findings"][0])

    def test_a_sanitizer_that_did_not_work_shows_nothing(self):
        with self.assertRaises(NotRun):
            endurance.judge_sanitizer("memcheck", 1, "========= Error: Device not supported\n", "")
        with self.assertRaisesRegex(StepFailed, "no summary"):
            endurance.judge_sanitizer("memcheck", 0, self.SOAKED, "")

    def test_no_latency_without_a_check(self):
        r = {"version": 1, "check": {"passed": True, "spans": []}, "device": "x", "position": 0, "steps_per_launch": 16,
             "launches": 100,
             "latency_us": {"median": 2}, "ceiling_us": {"median": 1}, "drain_us": {"median": 1}, "bytes_per_token": 1,
             "gbs": 1, "ceiling_gbs": 1, "read_gbs": 1, "share_of_ceiling": 0.5}
        self.assertEqual(endurance.judge_bench(r)["latency_us"], {"median": 2})
        r["check"] = {"passed": False, "failures": ["position 3: ..."]}
        self.assertEqual(set(endurance.judge_bench(r)), {"passed", "findings"})

    def test_eight_minutes(self):
        r = {"positions": 2048, "passes": 380, "free": 778_240, "forced": 4096, "difference": "", "seconds": 480.9,
             "latency_us": {"first": 650.0, "last": 617.0, "median": 616.0, "longest": 650.0, "first_tenth": 616.0,
                            "last_tenth": 622.0, "per_hour": 1.0}}
        row = endurance.judge_long_soak(r)
        self.assertEqual((row["passed"], row["free"], row["latency_us"]["last"]), (True, 778_240, 617.0))
        for change, want in (({"free": 599_999}, "600000 in 480 s"),
                             ({"difference": "pass 3, position 7: ..."}, "pass 3"),
                             ({"latency_us": r["latency_us"] | {"last_tenth": 622.2}}, "622.2 µs in the last")):
            row = endurance.judge_long_soak(r | change)
            self.assertFalse(row["passed"])
            self.assertIn(want, row["findings"][0])
        stopped = {k: v for k, v in r.items() if k not in ("seconds", "latency_us")}
        stopped["difference"] = "pass 3, position 7: ..."
        self.assertEqual(endurance.judge_long_soak(stopped)["findings"], ["pass 3, position 7: ..."])

    def test_looped_and_unrolled_are_compared_to_the_bit(self):
        nan = off((2, 2, np.nan))
        self.assertTrue(accuracy.judge_equality(nan, nan.copy())["passed"])
        row = accuracy.judge_equality(REF, np.where(REF == 0, np.float32(-0.0), REF))
        self.assertFalse(row["passed"])
        self.assertIn("the first at position 0, id 0", row["findings"][0])
        self.assertFalse(accuracy.judge_equality(REF, REF[:-1])["passed"])


if __name__ == "__main__":
    unittest.main()
