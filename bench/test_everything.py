"""Tests of which scripts bench/everything.py runs, in which order and for how long, without running any (numpy, and
what bench imports, alone)."""

import contextlib
import io
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parent))

import agent
import campaignpage
import campaigns
import everything
import experiments
import results
from alone import sole_use

PARSERS = {"results.py": results.parse, "campaigns.py": campaigns.parse, "agent.py": agent.parse,
           "campaignpage.py": campaignpage.parse, "experiments.py": experiments.parse}


class Everything(unittest.TestCase):
    def setUp(self):
        self.repo = Path(self.enterContext(tempfile.TemporaryDirectory())).resolve()
        self.ran, self.now, self.code, self.packs = [], 0.0, {}, True
        self.enterContext(mock.patch.object(everything, "REPO", self.repo))
        self.enterContext(mock.patch.object(everything.shutil, "which", lambda name: "/usr/bin/go"))
        self.enterContext(mock.patch.object(everything.importlib.util, "find_spec", lambda name: object()))
        self.enterContext(mock.patch.object(everything.time, "monotonic", lambda: self.now))
        self.enterContext(mock.patch.object(everything.subprocess, "run", self.script))

    def script(self, line, cwd):
        self.assertEqual(cwd, self.repo)
        self.assertTrue(Path(line[1]).exists(), "every script is there")
        name = Path(line[1]).name
        self.parse(name, line[2:])
        self.ran.append([name, *line[2:]])
        if name == "campaigns.py" and self.packs:
            (self.repo / everything.PACK).parent.mkdir(parents=True, exist_ok=True)
            (self.repo / everything.PACK).touch()
        if "--budget" in line:
            self.now += float(line[line.index("--budget") + 1])
        return subprocess.CompletedProcess(line, self.code.get(name, 0))

    def parse(self, name, arguments):
        """Has a script's own parser read what the script is given; two take nothing here."""
        if name not in PARSERS:
            self.assertEqual((name in ("searches.py", "draw.py"), arguments), (True, []))
            return
        with mock.patch.multiple(campaigns, gpus=lambda: ([0, 1], "h200")), \
                mock.patch.multiple(agent, gpus=lambda: ([0, 1], "h200")):
            PARSERS[name](arguments)

    def run_it(self, *args):
        out = io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            code = everything.main(list(args))
        return code, out.getvalue()

    def test_all_of_it_in_order(self):
        code, _ = self.run_it()
        self.assertEqual(code, 0)
        self.assertEqual([r[0] for r in self.ran], ["results.py", "campaigns.py", "agent.py", "campaignpage.py",
                                                    "searches.py", "experiments.py", "draw.py", "results.py"])
        self.assertEqual(self.ran[2][1:], ["--out", "build/campaigns", "--finish", "--budget", "3600"])
        self.assertEqual(self.ran[0][1:], [], "as long as it takes")
        self.assertEqual(self.ran[1][-4:], ["--slice", "360", "--budget", "3600"])
        self.assertEqual(self.ran[-1][1:], ["--render"])

    def test_a_budget_is_shared_out(self):
        with contextlib.chdir(self.repo):
            self.run_it("--budget", "1000", "--tools", "dist/results", "--gpus", "0,1")
        times = {r[0]: r[-1] for r in self.ran if "--budget" in r}
        self.assertEqual(times, {"results.py": "500", "campaigns.py": "300", "agent.py": "60", "experiments.py": "140"})
        self.assertEqual(self.ran[2][3:5], ["--gpu", "0"])
        self.assertEqual(self.ran[0][1:5], ["--tools", str(self.repo / "dist/results"), "--gpus", "0,1"])
        self.assertIn("--slice 160 --budget 300", " ".join(self.ran[1]), "the least that a campaign is begun for")

    def test_what_is_there_goes_on_and_what_cannot_run_is_said(self):
        pack = self.repo / everything.PACK
        pack.parent.mkdir(parents=True)
        pack.touch()
        with mock.patch.object(everything.shutil, "which", lambda name: None):
            code, said = self.run_it()
        self.assertEqual(code, 0)
        self.assertIn("--resume", self.ran[1])
        self.assertIn("experiments without a GPU: left out: it needs Go", said)
        self.assertNotIn("searches.py", [r[0] for r in self.ran])

    def test_without_a_pack_there_is_no_page_of_it(self):
        self.packs, self.code["campaigns.py"] = False, 2
        code, said = self.run_it()
        self.assertEqual(code, 1)
        self.assertIn("the page of campaigns: left out: no campaign has been packed", said)
        self.assertNotIn("campaignpage.py", [r[0] for r in self.ran])
        self.assertIn("left or failed: campaigns\n", said)

    def test_what_fails_is_said_and_the_rest_is_run(self):
        self.code["campaigns.py"] = 1
        code, said = self.run_it("--budget", "1000")
        self.assertEqual(code, 1)
        self.assertIn("left or failed: campaigns", said)
        self.assertEqual(self.ran[-1][0], "results.py")

    def test_where_nothing_can_be_measured_nothing_else_is_run(self):
        self.code["results.py"] = 2
        code, said = self.run_it()
        self.assertEqual((code, [r[0] for r in self.ran]), (2, ["results.py"]))
        self.assertIn("rows: nothing can be measured here", said)

    def test_rows_that_fail_do_not_keep_the_rest(self):
        self.code["results.py"] = 1
        code, _ = self.run_it()
        self.assertEqual((code, len(self.ran)), (1, 8))

    def test_nothing_is_begun_when_the_time_is_up(self):
        script = self.script

        def slow(line, cwd):
            self.now += 1001 if Path(line[1]).name == "results.py" else 0
            return script(line, cwd)

        with mock.patch.object(everything.subprocess, "run", slow):
            code, said = self.run_it("--budget", "1000")
        self.assertEqual((code, [r[0] for r in self.ran]), (1, ["results.py", "searches.py", "draw.py", "results.py"]))
        for name in ("campaigns", "trials of an agent", "experiments without a GPU"):
            self.assertIn(f"{name}: the time is up\n", said)
        self.assertIn("left or failed: campaigns, trials of an agent, experiments without a GPU\n", said)

    def test_a_checkout_is_for_one_at_a_time(self):
        with sole_use(self.repo / "build/everything"):
            code, said = self.run_it()
            self.assertEqual((code, self.ran), (2, []))
            self.assertIn("build/everything is in use by another invocation; wait for it, or end it\n", said)
            self.assertEqual(self.run_it("--list")[0], 0)
        self.assertEqual(self.run_it()[0], 0)

    def test_bad_usage(self):
        for args in (("--gpus", ""), ("--gpus", "a,b"), ("--gpus", "0,0"), ("--budget", "0"), ("--budget", "-1")):
            with contextlib.redirect_stderr(io.StringIO()) as said, self.assertRaises(SystemExit) as end:
                everything.main(list(args))
            self.assertEqual(end.exception.code, 2)
            self.assertIn(f"argument {args[0]}: {args[1]!r}: want ", said.getvalue())

    def test_readers_are_told_of_it(self):
        for page, says in (("bench/README.md", ("`make everything`", "--budget 1200", "--merge")),
                           ("docs/README.md", ("`make everything`",)), ("Makefile", ("--budget 1200",))):
            text = (everything.BENCH.parent / page).read_text(encoding="utf-8")
            for words in says:
                self.assertIn(words, text, page)
        self.assertIn("--budget 1200 ", everything.__doc__)

    def test_the_list_runs_nothing(self):
        code, said = self.run_it("--list")
        self.assertEqual((code, self.ran), (0, []))
        self.assertIn("campaigns: python3 bench/campaigns.py --out build/campaigns --slice 360 --budget 3600", said)
        self.assertIn("the page of campaigns: python3", said)


if __name__ == "__main__":
    unittest.main()
