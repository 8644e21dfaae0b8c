"""Tests of bench/experiments.py, of the published figures and of the page, without Go, a GPU or transformers."""

import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parent))

import coverage
import experiments
import experimentspage
import figures
import machine
import published
import report
import soundness
from workshop import Budget, OutOfTime

os.chdir(machine.REPO)
PAGE = machine.REPO / "docs/experiments.md"
ROWS = machine.REPO / "docs/results/experiments.json"


class Published(unittest.TestCase):
    def test_shapes_have_the_published_parameters(self):
        for c in published.COVERAGE:
            self.assertEqual(f"{coverage.parameters(c) / 1e6:.2f}", c.parameters, c.name)

    def test_the_confusion_matrix_adds_up(self):
        self.assertEqual(sum(published.CONFUSION), published.SCHEDULES)
        safe, _, strict, unsafe = published.CONFUSION
        self.assertEqual(sum(u.strict for u in published.UNSAFE), strict)
        graphs = unsafe - sum(u.unsafe for u in published.UNSAFE)
        self.assertEqual(graphs, 4000, "all random graphs")
        self.assertEqual(safe, 360 + sum(350 - u.unsafe - u.strict for u in published.UNSAFE))

    def test_every_table_and_figure_is_accounted_for(self):
        for paper, tables, drawn in ((published.AMK, 11, 6), (published.LOOPING, 3, 12)):
            known = {f.place for f in figures.figures() if f.paper == paper}
            known = [*known, *published.NO_FIGURES[paper], *published.TABLES[paper]]
            for place in [f"Table {i + 1}" for i in range(tables)] + [f"Figure {i + 1}" for i in range(drawn)]:
                self.assertEqual(known.count(place), 1, f"{place} of {paper}")


class Coverage(unittest.TestCase):
    def test_alike(self):
        self.assertEqual(coverage.alike([1, 2, 3], [1, 2, 4]), 2)
        self.assertEqual(coverage.alike([1, 2, 3], [1, 2, 3]), 3)
        self.assertEqual(coverage.alike([1, 2], [1, 2, 3]), 2)
        self.assertEqual(coverage.alike([5], [6]), 0)

    def test_every_family_has_a_row(self):
        names = [t.name for t in coverage.tasks() if t.section in ("families", "refusals")]
        self.assertEqual(len(names), len(set(names)))
        self.assertIn("pycoder-5m", names)
        for v in published.REFUSALS:
            self.assertIn(v.ours, names)
        self.assertEqual(len([t for t in coverage.tasks() if t.section == "coverage"]), len(published.COVERAGE))

    def test_without_transformers_a_row_is_not_run_and_a_difference_still_fails(self):
        with mock.patch.object(coverage.reference, "engines", side_effect=ModuleNotFoundError(name="torch")):
            row = coverage.judged(None, {"recorded": 40, "recorded_equal": 40}, "m", [1], (), None)
            self.assertEqual((row["passed"], row["not_run"]), (None, "there is no torch here to compare with"))
            row = coverage.judged(None, {"recorded": 40, "recorded_equal": 39}, "m", [1], (), None)
            self.assertIs(row["passed"], False)
            self.assertEqual(row["findings"], ["39 of 40 greedy tokens are those of transformers"])


    def test_a_refusal_is_one_at_import(self):
        shop = mock.Mock(Refused=experiments.Refused)
        for said, passed in (("config.json: error: no; accepted: x [AMK1104]", True),
                             ("program: error: no [AMK3130]", False)):
            shop.amkc.side_effect = experiments.Refused(said)
            row = coverage.refusal(shop, "x")
            self.assertEqual((row["passed"], bool(row["findings"])), (passed, not passed))
        shop.amkc.side_effect = None
        self.assertEqual(coverage.refusal(shop, "x"), {"passed": False, "findings": ["it is not refused"]})


class Shop(unittest.TestCase):
    def shop(self, script, seconds=None):
        directory = Path(self.enterContext(tempfile.TemporaryDirectory()))
        tool = directory / "amkc"
        tool.write_text("#!/bin/sh\n" + script, encoding="utf-8")
        tool.chmod(0o755)
        return experiments.Shop(tool, directory, Budget(seconds))

    def test_what_a_command_prints_and_why_it_fails(self):
        shop = self.shop("echo out $1")
        self.assertEqual(shop.amkc("x"), "out x\n")
        self.assertEqual(shop.log, ["amkc x"])
        with self.assertRaisesRegex(experiments.Refused, r"^model: error: no such \[AMK1\]$"):
            self.shop("echo 'model: error: no such [AMK1]' >&2; exit 1").amkc("x")

    def test_the_time_is_up(self):
        with self.assertRaises(OutOfTime):
            self.shop("sleep 5", 0.2).amkc("x")

    def test_what_goes_wrong_is_a_row_and_the_time_is_none(self):
        task = coverage.Task("coverage", "x", lambda shop: shop.amkc("x"))
        row = experiments.make_row(task, self.shop("echo no >&2; exit 1"))
        self.assertEqual((row["passed"], row["findings"], row["steps"]), (False, ["Refused: no"], ["amkc x"]))
        with self.assertRaises(OutOfTime):
            experiments.make_row(task, self.shop("sleep 5", 0.2))


class Resuming(unittest.TestCase):
    def test_rows_that_passed_are_kept_and_the_others_made(self):
        directory = Path(self.enterContext(tempfile.TemporaryDirectory()))
        made, environment = [], {"amkc": "1", "numpy": "2"}

        def task(name, passed):
            row = {"passed": passed, "findings": ["f"]}
            return coverage.Task("coverage", name, lambda shop: made.append(name) or row)

        def run(amkc="1"):
            made.clear()
            store = experiments.store(directory / "e.json")
            args = mock.Mock(again=False, page=directory / "e.md")
            return experiments.make_rows(args, [task("b", False), task("a", True)], store,
                                         experiments.Shop(None, directory, Budget()),
                                         environment | {"amkc": amkc}), list(made)

        self.assertEqual(run(), (1, ["b", "a"]))
        self.assertEqual(run(), (1, ["b"]), "what has passed with this amkc is not made again")
        self.assertEqual(run("2"), (1, ["a", "b"]), "with another amkc it is, and what has failed comes last")
        self.assertIn("## E1", (directory / "e.md").read_text(encoding="utf-8"))


class Population(unittest.TestCase):
    def row(self, false, fails, saves=True, programs=published.SCHEDULES):
        directory = Path(self.enterContext(tempfile.TemporaryDirectory()))
        saved = directory / "soundness.json"
        saved.write_text("of an earlier run", encoding="utf-8")
        counted = dict.fromkeys(soundness.COUNTED.values(), 0) | {"Group": "published", "Class": "cycle",
                                                                   "FalseAccepts": false, "Programs": programs}

        def go(*args):
            if saves:
                saved.write_text(json.dumps({"Report": {"Rows": [counted]}}), encoding="utf-8")
            if fails:
                raise experiments.Refused("FAIL")

        return soundness.population(mock.Mock(go=go, path=lambda name: str(directory / name),
                                              Refused=experiments.Refused))

    def test_a_false_accept_is_recorded_though_the_test_fails(self):
        self.assertEqual(self.row(0, False)["passed"], True)
        row = self.row(2, True)
        self.assertEqual((row["passed"], row["findings"], row["classes"][0]["false_accepts"]),
                         (False, ["2 programs that go wrong are accepted", "FAIL"], 2))
        self.assertEqual(self.row(0, True)["findings"], ["FAIL"])
        self.assertEqual(self.row(0, False, programs=20)["findings"], ["20 programs were judged, of 7,160"])
        with self.assertRaises(experiments.Refused):
            self.row(0, True, saves=False)


class Rejections(unittest.TestCase):
    def test_codes_are_counted(self):
        saved = Path(self.enterContext(tempfile.TemporaryDirectory())) / "rejections.json"
        every = dict.fromkeys(published.ALL_REJECTED, published.EACH)
        codes = {"AMK3120": {"cycle": 3, "dag": 2}, "AMK3101": every | {"dag": 1}}
        saved.write_text(json.dumps({"codes": codes, "strict": {}}), encoding="utf-8")
        shop = mock.Mock(path=lambda name: str(saved))
        row = soundness.rejections(shop)
        self.assertIn(str(saved), shop.go.call_args.args)
        self.assertEqual((row["rejected"], row["codes"]["AMK3120"]["dag"], row["passed"]), (1056, 2, True))
        codes["AMK3101"]["oob_buffer"] -= 1
        saved.write_text(json.dumps({"codes": codes, "strict": {}}), encoding="utf-8")
        row = soundness.rejections(shop)
        self.assertEqual((row["passed"], row["findings"]),
                         (False, ["349 of the 350 of oob_buffer were rejected, and none is right"]))

    def test_they_are_those_of_the_population(self):
        """Both rows judge the same programs: what has a code is what the population has rejected, class by class."""
        rows = experiments.store(ROWS).rows
        row = rows["soundness/rejections"]
        for c in rows["soundness/population"]["classes"]:
            of = lambda codes: sum(classes.get(c["class"], 0) for classes in codes.values())
            self.assertEqual((of(row["codes"]), of(row["strict"])), (c["rejected"] + c["strict"], c["strict"]),
                             c["class"])


class Rates(unittest.TestCase):
    TEXT = ("BenchmarkPublished/flat-2 \t 13326 \t 18627 ns/op\t 6291 programs\t 106701 schedules/cpu-s\n"
            "BenchmarkPublished/memory-2 \t 13326 \t 186275 ns/op\t 106700 schedules/cpu-s\n"
            "BenchmarkPublished/file \t 502 \t 6074111 ns/op\t 164.6 schedules/cpu-s\n")

    def test_rates_are_read_and_a_missing_one_is_a_finding(self):
        row = soundness.rates(mock.Mock(go=lambda *args: self.TEXT))
        self.assertEqual(row["per_second"], {"flat": 106701.0, "memory": 106700.0, "file": 164.6})
        self.assertEqual(row["flat"], 6291)
        self.assertEqual((row["passed"], row["findings"]), (False, ["no rate of simulate was printed"]))


class Page(unittest.TestCase):
    def setUp(self):
        self.store = experiments.store(ROWS)
        self.text = experimentspage.page(self.store, experiments.tasks([], []))

    def test_the_page_is_that_of_its_rows(self):
        self.assertEqual(self.text, PAGE.read_text(encoding="utf-8"), "python3 bench/experiments.py --render")

    def test_published_figures_are_in_it(self):
        for c in published.COVERAGE:
            self.assertRegex(self.text, rf"\| {re.escape(c.name)} \| {c.parameters} \|.* {c.tasks} .*{c.error}")
        for f in figures.figures():
            self.assertIn(f"| {f.place} | {f.what} | {f.says} | ", self.text)

    def test_structure_is_the_published_one(self):
        for c in published.COVERAGE:
            row = self.store.rows.get(f"coverage/{coverage.slug(c.name)}")
            if row and row["passed"] is not False:
                self.assertEqual((row["tasks"], row["buffers"], row["counters"]), (c.tasks, c.buffers, c.counters))
                self.assertEqual((row["layers"], row["hidden"], row["heads"], row["kv_heads"]),
                                 (c.layers, c.hidden, c.heads, c.kv_heads), c.name)

    def test_no_row_is_of_nothing(self):
        ids = {t.id for t in experiments.tasks([], [])}
        self.assertLessEqual(set(self.store.rows), ids)

    def test_list_and_bad_usage(self):
        listed = subprocess.run([sys.executable, "bench/experiments.py", "--list", "--section", "soundness"], text=True,
                                capture_output=True, check=True)
        self.assertEqual(listed.stdout.split(), ["soundness/population", "soundness/rejections", "soundness/rates"])
        none = subprocess.run([sys.executable, "bench/experiments.py", "--only", "nothing"], text=True,
                              capture_output=True, check=False)
        self.assertEqual(none.returncode, 2)
        self.assertIn("no row is selected", none.stderr)


if __name__ == "__main__":
    unittest.main()
