"""Tests that every published figure of two papers has ours, or the reason why there is none: numpy alone."""

import fnmatch
import re
import sys
import tempfile
import unittest
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parent))

import ablations
import answered
import answers
import answers_looping
import answers_search
import answers_soundness
import answers_speed
import boundaries
import columns
import drawings
import experiments
import figures
import grids
import machine
import published
import report
import results

ROWS = machine.REPO / experiments.ROWS


class Answers(unittest.TestCase):
    def setUp(self):
        self.results = answers.Results(ROWS.parent, experiments.store(ROWS))
        self.none = answers.Results(self.enterContext(tempfile.TemporaryDirectory()), experiments.store("nothing.json"))

    def test_every_figure_has_ours_or_the_reason(self):
        keys = [f.key for f in figures.figures()]
        self.assertEqual(len(keys), len(set(keys)))
        self.assertEqual(set(answered.ANSWERS), set(figures.GROUPS))
        self.assertEqual(set(answered.ANSWERS), set(answered.TITLES))
        for group, theirs in figures.GROUPS.items():
            given = answered.ANSWERS[group](self.results)
            self.assertEqual(set(given), {f.key for f in theirs}, group)
            for f in theirs:
                with self.subTest(figure=f.key):
                    a = given[f.key]
                    self.assertTrue(a.ours or a.why)
                    self.assertFalse(a.ours and a.why.startswith("not measured yet"))
                    if a.ours:
                        self.assertTrue(a.command, "ours was made by a command")

    def test_an_agents_campaign_is_its_own_answer(self):
        self.assertTrue(answers_search.search(self.none)["agent"].why.startswith("not measured yet"))
        tried = [{"decision": d} for d in ("revert", "keep", "revert")]
        row = {"name": "x-agent-h200", "device": "cuda", "cold": False, "trials": 5, "minutes": 12.0, "curve": [1, 2],
               "confirmed": {"ratio": {"mean": 0.8, "low": 0.78, "high": 0.82}}, "experiments": tried}
        with mock.patch.object(self.none, "campaigns", {"x-agent-h200": row}):
            given = answers_search.search(self.none)
        self.assertEqual(given["agent"].ours, "x-agent-h200: 3 experiments, 1 kept, 1.25×")
        self.assertEqual(given["agent"].command, "python3 bench/agent.py")
        self.assertEqual(given["ten-minutes"].ours, "", "the machine had no part in it")

    def test_a_confirmation_that_is_a_loss_says_so(self):
        c = lambda low, high: {"name": "x", "confirmed": {"ratio": {"mean": 1, "low": low, "high": high}}}
        self.assertEqual(answers_search.interval(c(0.5, 0.8)), "x: 1.250 to 2.000×")
        self.assertEqual(answers_search.interval(c(1.0028, 1.0105)), "x: 0.990 to 0.997×, a loss: not confirmed")
        self.assertEqual(answers_search.interval(c(0.98, 1.0)), "x: 1.000 to 1.020×, not confirmed")

    def test_seeds_that_found_nothing_are_counted(self):
        c = lambda found, confirmed, s: {"curve": [[0, 1.0]] + [[1, 0.5]] * found, "confirmed": confirmed,
                                         "gpu_seconds": s}
        campaigns = {"m-cold-seed1-h100": c(1, {"gain": True}, 90.4), "m-cold-seed2-h100": c(1, {"gain": False}, 90.2),
                     "m-warm-seed1-h100": c(1, None, 60.0), "m-warm-seed2-h100": c(0, None, 52.0)}
        of = answers_search.starts(campaigns)
        self.assertEqual(of.ours, "m, h100: 1.00× (cold: 2 of 2 seeds had one, 1 confirmed, 90 to 90 s of the GPU, "
                         "warm: 1 of 2 seeds had one, 0 confirmed, 52 to 60 s of the GPU)")

    def test_the_trial_of_the_best_is_of_those_that_there_were(self):
        self.assertEqual(answers_search.trials_to_best({"search-a": {"best_at": 0, "trials": 61},
                                                        "search-b": {"best_at": 61, "trials": 63}}).ours,
                         "a: nothing found; b: 61 of 62")
        self.assertEqual(answers_search.trials_to_best({"search-a": {"best_at": 0, "trials": 61}}).ours, "")

    def test_neither_is_refused(self):
        with self.assertRaisesRegex(ValueError, "neither a number nor a reason"):
            answers.Answer("", "python3 x", "")

    def test_a_figure_that_nobody_answers_is_missed(self):
        extra = figures.of(figures.AMK, "Table 7", ("new", "another one", "1 %"))
        with mock.patch.dict(figures.GROUPS, {"roofline": figures.ROOFLINE + extra}):
            with self.assertRaises(KeyError):
                answered.part("roofline", self.results)

    def test_without_rows_it_says_so(self):
        computed = {"intensity", "search"}
        for group in answered.ANSWERS:
            for key, a in answered.ANSWERS[group](self.none).items():
                if group not in computed:
                    self.assertEqual(a.ours, "", key)
                self.assertTrue(a.ours or a.why, key)
        text = "\n".join(answered.part("precision", self.none))
        self.assertRegex(text, r"\| 1\.19×, 1\.04× \| \*\*not measured yet\*\* \| `python3 bench/results\.py --only c")
        self.assertRegex(text, r"L4, 1\.3B \| 1\.18×, 1\.13× \| none \|  \| no L4 was to be had \|")

    def test_commands_make_rows_that_there_are(self):
        ids = {t.id for t in results.tasks([], []) + experiments.tasks([], [])}
        named = set()
        for group in answered.ANSWERS:
            for of in (self.results, self.none):
                for a in answered.ANSWERS[group](of).values():
                    named |= set(re.findall(r"--only (\S+?);?(?= |$)", a.command))
        self.assertGreater(len(named), 30)
        for name in named:
            self.assertTrue(fnmatch.filter(ids, name.strip("'")), name)

    def test_what_a_token_reads_is_near_what_is_published(self):
        given = answers_looping.intensity(self.none)
        number = lambda text: float(text.strip())
        *sized, bound = figures.INTENSITY
        self.assertEqual(bound.says, given[bound.key].ours.partition(":")[0])
        for f in sized:
            theirs, ours = (list(map(number, t.split(","))) for t in (f.says, given[f.key].ours))
            for i, allowed in ((0, 0.02), (1, 0.02), (2, 0.16), (3, 0.07), (4, 0.2)):
                self.assertLess(abs(ours[i] / theirs[i] - 1), allowed, f"{f.what}: {i}")

    def test_every_rejection_stands_in_one_bucket_or_beside_them(self):
        every = [code for codes in answers_soundness.CODES.values() for code in codes]
        self.assertEqual(len(every), len(set(every)))
        row = self.results.row("cpu", "soundness/rejections")
        given = answers_soundness.rejections(self.results)
        first = lambda text: int(text.partition(" ")[0].replace(",", ""))
        told = sum(first(given[f"rejected-{bucket}"].ours) for bucket in answers_soundness.CODES)
        unnamed = answers_soundness.unnamed(row["codes"])
        self.assertEqual(told + first(unnamed), row["rejected"])
        self.assertIn(unnamed, given["rejected-arity"].why)
        of = lambda start: sum(first(f.says) for f in figures.REJECTIONS if f.key.startswith(start))
        _, _, strict, unsafe = published.CONFUSION
        self.assertEqual((of("rejected-"), of("strict-")), (strict + unsafe, strict))

    def test_faults_of_the_paper_are_operators_that_were_tried(self):
        operators = self.results.searches["faults"]["operators"]
        for key, operator in answers_search.FAULTS.items():
            self.assertGreater(operators[operator]["made"], 0, key)
        says = {f.key: f.says for f in figures.SEARCH}
        self.assertEqual(sum(int(says[key]) for key in answers_search.FAULTS), 20)

    def test_commands_are_told_together(self):
        self.assertEqual(answers.together(["x --t 1 --only a", "x --t 1 --only b", "x --t 2 --only a", "y",
                                           "x --t 1 --only a"]), "x --t 1 --only a --only b; x --t 2 --only a; y")


class Compared(unittest.TestCase):
    """Rows of section compare that are made up."""

    def setUp(self):
        self.dir = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.h100 = report.Store(self.dir / "h100.json")

    def put(self, row_id, **engines):
        row = {"id": row_id, "section": "compare", "model": "m", "dtype": "bf16", "passed": True, "findings": [],
               "command": f"python3 bench/results.py --target h100 --only {row_id}", "engines": engines,
               "read_gbs": 10.0, "bytes_per_token": 2000.0}
        self.h100.put(row, {"gpu": "H100", "amkc": "1"})

    def results(self):
        return answers.Results(self.dir, experiments.store(self.dir / "experiments.json"))

    def test_ratios_are_those_of_the_row_and_else_of_two(self):
        us = lambda x: {"us": {"median": x}}
        self.put("compare/llama-3.2-1b-bf16-seed1-128", amkc=us(100.0), eager=us(300.0) | {"times_amkc": 3.0})
        self.put("compare/llama-3.2-1b-bf16-seed1-int8-128", amkc=us(60.0) | {"weight_bytes": 900.0})
        self.assertEqual(answers_speed.precision(self.results())["10-h100-1b"].ours,
                         "H100, 1B, at 128: transformers' step 5.00× (of two rows)")
        self.assertIn("60.0 µs (1.67×)", answers_speed.precision(self.results())["6-int8"].ours)
        self.put("compare/llama-3.2-1b-bf16-seed1-int8-128", amkc=us(60.0), eager=us(240.0) | {"times_amkc": 4.0})
        a = answers_speed.precision(self.results())
        self.assertEqual(a["10-h100-1b"].ours, "H100, 1B, at 128: transformers' step 4.00×")
        self.assertEqual(a["10-h100-13b"].ours, "")
        self.assertEqual(drawings.precisions(self.results()), [
            {"label": "H100, 1B, at 128, bf16", "times": {"eager": 3.0}},
            {"label": "H100, 1B, at 128, int8", "times": {"eager": 4.0}}])

    def test_a_row_that_one_gpu_lacks_is_said_to_be_missing(self):
        row_id = "roofline/llama-2048h-4l-fp32-seed1-0"
        self.h100.put({"id": row_id, "section": "roofline", "model": "m", "dtype": "fp32", "passed": True,
                       "findings": [], "command": "x", "latency_us": {"median": 2.0, "p10": 1.0, "p90": 3.0},
                       "bytes_per_token": 1e6, "gbs": 335.0, "read_gbs": 670.0}, {"gpu": "H100", "amkc": "1"})
        a = answers.roofline(self.results())["h100-small-fp32"]
        self.assertEqual(a.ours, "H100: 2.0 µs, 335 GB/s, 10.0 %, 50.0 %; H200: **not measured yet**")
        self.assertEqual(a.command, f"x; python3 bench/results.py --target h200 --only {row_id}")

    def test_what_is_compiled_stands_beside_the_step_in_a_graph(self):
        self.put("compare/llama-3.2-1b-bf16-seed1-int8-128", amkc={"us": {"median": 60.0}},
                 eager={"us": {"median": 240.0}, "times_amkc": 4.0, "share_of_ceiling": 0.2},
                 compile={"us": {"median": 120.0}, "times_amkc": 2.0})
        a = answers_speed.precision(self.results())["10-h100-1b"]
        self.assertEqual(a.ours, "H100, 1B, at 128: transformers' step 4.00×, 2.00× through torch.compile in int8")
        self.assertIn("at no known share of the ceiling", a.why)

    def test_rounds_are_told_where_a_row_has_them(self):
        times = {"us": {"median": 60.0}, "round_us": [60.0, 50.0]}
        self.put("compare/llama-2048h-4l-bf16-seed1-int8-0", amkc=times | {"weight_bytes": 500.0},
                 eager={"us": {"median": 90.0}, "round_us": [90.0, 80.0], "times_amkc": 1.55, "weight_bytes": 1000.0})
        given = answers_speed.precision(self.results())
        self.assertEqual(given["10-5090-4l"].ours, "H100, small, at 0: transformers' step 1.55× (1.50 to 1.60)")
        self.assertEqual(given["10-bytes"].ours, "H100, small, at 0: 0.50×")

    def test_a_row_that_failed_is_none(self):
        self.put("compare/llama-3.2-1b-bf16-seed1-128", amkc={"us": {"median": 1.0}})
        self.h100.rows["compare/llama-3.2-1b-bf16-seed1-128"]["passed"] = False
        self.h100.save()
        self.assertEqual(answers_speed.precision(self.results())["6-bf16"].ours, "")


class Grids(unittest.TestCase):
    """The tables that put many rows beside one another."""

    def setUp(self):
        self.results = answers.Results(ROWS.parent, experiments.store(ROWS))
        self.none = answers.Results(self.enterContext(tempfile.TemporaryDirectory()), experiments.store("nothing.json"))

    def test_every_comparison_of_both_gpus_has_its_line(self):
        text = "\n".join(grids.engines(self.results))
        for gpu in answers.GPUS:
            for row in self.results.rows(gpu, "compare"):
                line = next(x for x in text.splitlines()
                            if x.startswith(f"| {answers.NAMES[gpu]} ") and f"`{row['command']}`" in x)
                for name in row["engines"]:
                    self.assertIn(f"{row['engines'][name]['us']['median']:,.1f} µs", line, row["id"])
        self.assertLessEqual(set(grids.planned()), {t.id for t in results.tasks([], [])})

    def test_every_boundary_of_both_gpus_has_its_line(self):
        text = grids.boundaries(self.results)
        lines = [x for x in text if x.startswith(("| H100", "| H200"))]
        rows = [row for gpu in answers.GPUS for section in ("barriers", "boundaries")
                for row in self.results.rows(gpu, section)]
        self.assertEqual(len(lines), len(rows))
        for row in rows:
            line, = (x for x in lines if x.endswith(f"`{row['command']}` |"))
            self.assertIn(f"| {row['loop_us']:,.1f} µs | {row['barriers_us'] / row['loop_us']:.3f}× |", line)
            self.assertEqual("| apart |" in line, not row.get("interleaved", True))
            same = "defaults" in row or row["position"] < 512 or row.get("sequences", 1) > 1
            self.assertEqual(line.startswith(f"| {line[2:6]} \\* |"), not same)
        self.assertFalse([x for x in grids.boundaries(self.none) if x.startswith("|")])

    def test_launches_that_walked_all_layers_are_withdrawn(self):
        row = next(r for gpu in answers.GPUS for r in self.results.rows(gpu, "boundaries") if r.get("launches"))
        for alone in (False, True):
            of = {k: {**x, "alone": alone} for k, x in row["launches"].items()}
            made = SimpleNamespace(rows=lambda gpu, section, of=of: [row | {"launches": of}] if
                                   (gpu, section) == ("h200", "boundaries") else [], row=lambda gpu, row_id: None)
            line = next(x for x in grids.boundaries(made) if x.startswith("| H200"))
            told = answers_looping.looping(made)["8-geomean"]
            gain = f"{of['stage']['us'] / row['loop_us']:.3f}×"
            self.assertEqual([gain in line, gain in told.ours, columns.launches({"launches": of}, "stage").endswith(
                f"({of['stage']['gain']:.3f} ×)")], [alone] * 3)
            self.assertEqual(["withdrawn" in line, answers_looping.WITHDRAWN in told.why, "withdrawn" in
                              columns.launches({"launches": of}, "layer")], [not alone] * 3)

    def test_a_loss_is_said_as_one(self):
        self.assertEqual([answers_speed.faster(x) for x in (2.867, 1, 0.5)],
                         ["2.87× faster", "1.00× faster", "2.00× slower"])

    def test_every_boundary_that_is_missing_is_said(self):
        self.assertEqual(list(answers_looping.planned()), [t.id for t in boundaries.boundaries()])
        for r in (self.results, self.none):
            said = " ".join(" ".join(grids.boundaries(r)).split())
            for gpu in answers.GPUS:
                made = {row["id"] for row in r.rows(gpu, "boundaries")}
                missing = [what for i, what in answers_looping.planned().items() if i not in made]
                start, end = f"yet on an {answers.NAMES[gpu]}: ", f". `python3 bench/results.py --target {gpu} --only"
                self.assertEqual(start in said, bool(missing))
                listed = said.partition(start)[2].partition(end)[0]
                found = [(what, int(p)) for part in listed.split("; ") if part
                         for what, _, of in [part.partition(", at ")] for p in of.replace(",", "").split()]
                self.assertEqual(found, missing)

    def test_what_is_missing_is_said_below_and_has_no_line(self):
        for r in (self.results, self.none):
            text = grids.engines(r)
            lines = [x.split(" | ")[:4] for x in text if x.startswith(("| H100", "| H200"))]
            self.assertEqual(len(lines), sum(len(r.rows(gpu, "compare")) for gpu in answers.GPUS))
            below = " ".join(" ".join(text).split())
            for gpu in answers.GPUS:
                made = {row["id"] for row in r.rows(gpu, "compare")}
                missing = {(f"{grids.model(i)} at {position:,}", weights or "bf16")
                           for i, (position, weights) in grids.planned().items() if i not in made}
                _, found, said = below.partition(f"Planned and not measured yet on an {answers.NAMES[gpu]}: ")
                self.assertEqual(bool(found), bool(missing), gpu)
                if not missing:
                    continue
                said, _, command = said.partition(". `")
                self.assertTrue(command.startswith(f"python3 bench/results.py --target {gpu} --only 'compare/*'`"))
                named = {(where, form) for part in said.split("; ") for where, _, of in [part.partition(" in ")]
                         for form in of.split(", ")}
                self.assertEqual(named, missing)

    def test_search_and_ablations_have_theirs_ours_and_what_was_kept(self):
        for r in (self.results, self.none):
            lines = [x.split(" | ") for x in grids.side_by_side(r) if x.startswith(("| E3", "| Table 9"))]
            self.assertEqual({x[2] for x in lines}, {f.says for f in figures.figures()
                                                     if f.key in (*grids.SEARCHED, *grids.ABLATIONS)})
            self.assertEqual({(x[3], x[5]) for x in lines if x[0] == "| Table 9"}, {("", "")}, "no row has it")
        self.assertEqual([x[3] for x in lines[:3]], ["5 of 60"] * 3)
        variants = {v.name for v in ablations.VARIANTS}
        self.assertLessEqual(set(grids.ABLATIONS.values()), variants)


class Drawings(unittest.TestCase):
    def test_files_are_drawn_of_the_rows(self):
        r = answers.Results(ROWS.parent, experiments.store(ROWS))
        for d in drawings.DRAWINGS:
            data = d.data(r)
            if data:
                self.assertEqual(drawings.drawn(d.path), drawings.digest(data), f"{d.name}: python3 bench/draw.py")
            else:
                self.assertFalse(d.path.exists(), f"{d.name} shows what no row has")

    def test_a_file_of_other_data_is_found(self):
        self.assertNotEqual(drawings.digest([1]), drawings.digest([2]))
        path = Path(self.enterContext(tempfile.TemporaryDirectory())) / "x.svg"
        path.write_text("<svg/>\n")
        self.assertEqual(drawings.drawn(path), "")


if __name__ == "__main__":
    unittest.main()
