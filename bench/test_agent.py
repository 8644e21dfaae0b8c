"""Tests of how bench/agent.py tries experiments, goes on where it was killed, and refuses what cannot be tried, with an
amkc that only looks like one."""

import contextlib
import io
import json
import os
import sys
import tarfile
import tempfile
import textwrap
import unittest
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parent))

import agent
import campaignpage
import campaigns
import packing
import running
from alone import sole_use

# amkc that keeps what has a pace of 600 and rejects one of 1. Files beside it make it fail.
AMKC = """\
    #!{python} -IS
    import json, os, pathlib, sys, uuid
    here, args = pathlib.Path(__file__).parent, sys.argv[1:]
    def after(flag): return args[args.index(flag) + 1]
    def flat(c): return {{f"tiling.{{g}}.{{k}}": v for g, of in c.get("tiling", {{}}).items() for k, v in of.items()}}
    def verdict(settings, baseline):
        bad, pace = settings.get("tiling.ring.pace") == 1, settings.get("tiling.ring.pace")
        v = {{"class": "REJECTED" if bad else "PASS", "id": json.dumps(settings), "settings": settings,
             "baseline_id": json.dumps(baseline), "baseline": baseline, "rung": "final", "positions": [2048, 8192],
             "decision": "keep" if pace == 600 else "revert", "why": "it is so", "signature": uuid.uuid4().hex,
             "gpu_seconds": 7}}
        r = {{"mean": 0.9 if pace == 600 else 1.0, "low": 0.89, "high": 0.91}}
        return v | ({{"reason": {{"code": "AMK6109"}}}} if bad else
                    {{"ratio": r, "at": [{{"position": 2048, "ratio": r, "candidate_us": {{"median": 9}},
                                        "baseline_us": {{"median": 10}}}}]}})
    verb = args[0] if args[0] != "campaign" else " ".join(args[:2])
    with open(here / "calls", "a") as f: f.write(json.dumps([verb] + args) + "\\n")
    out = pathlib.Path(after("-o") if verb == "search" else args[2] if verb.startswith("campaign") else ".")
    lines = (out / "trials.jsonl").read_text().splitlines() if (out / "trials.jsonl").exists() else []
    best = {{}}
    for t in map(json.loads, lines):
        if t["best"]: best = t["settings"]
    def add(role, v):
        with open(out / "trials.jsonl", "a") as f:
            f.write(json.dumps({{"n": len(lines), "role": role, "settings": v["settings"], "verdict": v, "best":
                role == "recorded" and v["decision"] == "keep", "started": "2026-01-01T00:00:00Z", "seconds": 1}}) +
                "\\n")
    if verb == "search":
        out.mkdir(exist_ok=True)
        pathlib.Path(after("--key")).write_text("a key")
        (out / "campaign.json").write_text(json.dumps({{"target": after("--target"), "model": "m", "device": "cuda",
            "positions": [2048, 8192], "held_out": [2400, 8300], "cold": False, "seed": 1, "proposers": [],
            "amkc": "dev", "start": {{}}}}))
        if not lines:
            start = verdict({{}}, {{}})
            if (here / "bad start").exists(): start |= {{"class": "FAIL", "why": "FAIL: it is wrong"}}
            add("start", start)
        elif int(after("--trials")) == len(lines): add("confirm", verdict(best, {{}}))
        print(json.dumps({{"stop": "so many", "estimate": 0.9, "confirmed": None, "held_out": None,
                           "soundness": {{"trials": 1, "classes": {{"PASS": 1}}}}}}))
    elif verb == "campaign next" and (here / "over").exists():
        print(json.dumps({{"stop": "the best possible gain is below what counts"}}))
    elif verb == "campaign next":
        tiling = {{"ring": {{"pace": best["tiling.ring.pace"]}}}} if best else {{}}
        print(json.dumps({{"job": {{"role": "candidate", "against": best}}, "baseline": {{"tiling": tiling}}}}))
    elif verb == "campaign record":
        if (here / "killed").exists(): sys.exit(9)
        add("recorded", json.loads(pathlib.Path(args[3]).read_text())["verdict"])
        print("{{}}")
    elif verb == "eval" and "--build-only" in args: print(json.dumps({{"built": True}}))
    elif verb == "eval":
        config = json.loads(pathlib.Path(after("--config")).read_text())
        if "pase" in config.get("tiling", {{}}).get("ring", {{}}):
            print(json.dumps({{"errors": [{{"message": "there is no such knob"}}]}})); sys.exit(1)
        base = json.loads(pathlib.Path(after("--baseline")).read_text()) if "--baseline" in args else {{}}
        v = verdict(flat(config), flat(base))
        print(json.dumps({{"verdict": v}}))
        sys.exit(v["class"] != "PASS")
"""


class Agent(unittest.TestCase):
    def setUp(self):
        self.tools, self.work, self.experiments = (Path(self.enterContext(tempfile.TemporaryDirectory()))
                                                   for _ in range(3))
        amkc = self.tools / "amkc"
        amkc.write_text(textwrap.dedent(AMKC).format(python=sys.executable), encoding="utf-8")
        amkc.chmod(0o755)
        self.enterContext(contextlib.chdir(os.getcwd()))
        self.enterContext(mock.patch.object(running, "ROOT", self.tools / "checkout"))
        self.here = self.work / agent.CAMPAIGN.name
        self.write(1, 700)
        self.write(2, 600)
        self.write(3, 500)

    def write(self, n, pace, why="because", name="pace"):
        (self.experiments / f"{n}.json").write_text(json.dumps({"tiling": {"ring": {name: pace}}}), "utf-8")
        (self.experiments / f"{n}.txt").write_text(why, "utf-8")

    def run_it(self, *args, device="cost", budget="60", work=None):
        out = io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            code = agent.main(["--tools", str(self.tools), "--device", device, "--target", "h100", "--budget", budget,
                               "--work", str(work or self.work), "--out", str(work or self.work), "--experiments",
                               str(self.experiments), *args])
        return code, out.getvalue()

    def calls(self, verb, *having):
        path = self.tools / "calls"
        lines = map(json.loads, path.read_text("utf-8").splitlines() if path.exists() else [])
        return [c for c in lines if c[0] == verb and all(h in c for h in having)]

    def tried(self):
        """The paces of the experiments that were judged in full, each with that of its baseline."""
        return [(t["settings"].get("tiling.ring.pace"), t["verdict"]["baseline"].get("tiling.ring.pace"))
                for t in packing.trials(self.here) if t["role"] == "recorded"]

    def test_each_is_judged_against_the_best_so_far(self):
        code, said = self.run_it()
        self.assertEqual(code, 0, said)
        self.assertEqual(self.tried(), [(700, None), (600, None), (500, 600)])
        begun = self.calls("search")
        self.assertEqual(len(begun), 1)
        far = next(c for c in campaigns.CAMPAIGNS if c.name == "qwen3-0.6b-far")
        for flag, value in (("--trials", "1"), ("--position", far.positions), ("--held-out", far.held_out),
                            ("--max-seq", str(far.max_seq)), ("--tag", "qwen3-0.6b-agent")):
            self.assertEqual(begun[0][begun[0].index(flag) + 1], value)
        self.assertIn("experiment 2: keep: 0.9000 (0.8900 to 0.9100); 0.9000 at 2048; it is so", said)
        self.assertEqual([c for c in self.calls("eval") if "--build-only" in c], [], "predictions need no builds")

        # Nothing is tried twice.
        before = len(self.calls("eval"))
        code, said = self.run_it()
        self.assertEqual((code, len(self.calls("eval")), len(self.tried())), (0, before, 3), said)

    def test_more_experiments_go_on_elsewhere(self):
        self.run_it()
        self.write(4, 1)
        other = Path(self.enterContext(tempfile.TemporaryDirectory()))
        before = len(self.calls("campaign record"))
        code, said = self.run_it("--resume", str(self.work / packing.PACKED), "--finish", work=other)
        self.assertEqual(code, 0, said)
        self.assertEqual(len(self.calls("campaign record")), before + 1)
        self.assertIn("experiment 4: it is so [AMK6109]", said)
        roles = [t["role"] for t in packing.trials(other / agent.CAMPAIGN.name)]
        self.assertEqual(roles, ["start", *["recorded"] * 4, "confirm"])
        self.assertEqual((other / agent.CAMPAIGN.name / "experiments" / "4.txt").read_text("utf-8"), "because")
        with tarfile.open(other / packing.PACKED) as tar:
            names = {n.removeprefix(agent.CAMPAIGN.name + "/") for n in tar.getnames()}
        self.assertLessEqual({"verdict.key", "trials.jsonl", "ended", "experiments/4.json", "experiments/4.txt",
                              "experiments/4.verdict.json"}, names)

        # The page shows what was tried, and why.
        docs = Path(self.enterContext(tempfile.TemporaryDirectory()))
        campaignpage.main(["--take", str(other / packing.PACKED), "--docs", str(docs)])
        row = json.loads((docs / "results/campaigns.json").read_text("utf-8"))["campaigns"]["qwen3-0.6b-agent-h100"]
        self.assertEqual([(e["number"], e["class"], e["decision"]) for e in row["experiments"]],
                         [(1, "PASS", "revert"), (2, "PASS", "keep"), (3, "PASS", "revert"),
                          (4, "REJECTED", "revert")])
        page = (docs / "campaigns.md").read_text("utf-8")
        for line in ("| [2](results/agent/2.txt) | `tiling.ring.pace` 600 | the defaults | 0.9000 (0.8900 to 0.9100) | "
                     "keep |", "| [3](results/agent/3.txt) | `tiling.ring.pace` 500 | `tiling.ring.pace` 600 | 1.0000 ("
                     "0.8900 to 0.9100) | revert |", "| [4](results/agent/4.txt) | `tiling.ring.pace` 1 | "
                     "`tiling.ring.pace` 600 | REJECTED, AMK6109 | revert |"):
            self.assertIn(line, page)

    def test_a_verdict_that_was_not_recorded_is_not_made_again(self):
        (self.tools / "killed").touch()
        code, said = self.run_it()
        self.assertEqual((code, self.tried()), (1, []), said)
        self.assertEqual(campaignpage.agentpage.experiments(self.here), [], "nor shown")
        made = len(self.calls("eval", "final"))
        (self.tools / "killed").unlink()
        code, said = self.run_it()
        self.assertEqual((code, len(self.tried())), (0, 3), said)
        self.assertEqual(len(self.calls("eval", "final")), made + 2, "of the other two")
        self.assertEqual([e["number"] for e in campaignpage.agentpage.experiments(self.here)], [1, 2, 3])

    def test_words_of_a_verdict_do_not_act_on_a_terminal(self):
        (self.tools / "killed").touch()
        self.run_it()
        (self.tools / "killed").unlink()
        file = self.here / "experiments" / "1.verdict.json"
        file.write_text(file.read_text("utf-8").replace("it is so", "so\\u001b[2J it is"), "utf-8")
        code, said = self.run_it()
        self.assertEqual(code, 0, said)
        self.assertIn("experiment 1: revert: 1.0000 (0.8900 to 0.9100); 1.0000 at 2048; so\\x1b[2J it is", said)

    def test_a_verdict_against_another_baseline_is_made_again(self):
        (self.tools / "killed").touch()
        self.run_it()
        (self.tools / "killed").unlink()
        file = self.here / "experiments" / "1.verdict.json"
        v = json.loads(file.read_text("utf-8"))
        v["verdict"]["baseline"] = {"tiling.ring.pace": 9}
        file.write_text(json.dumps(v), "utf-8")
        code, said = self.run_it()
        self.assertEqual((code, self.tried()[0]), (0, (700, None)), said)

    def test_builds_are_made_ahead(self):
        self.enterContext(mock.patch.dict(agent.LEAST, cuda=0))
        code, said = self.run_it("--gpu", "3", device="cuda")
        self.assertEqual(code, 0, said)
        self.assertEqual(len(self.calls("eval", "--build-only")), 3)
        self.assertEqual(len(self.tried()), 3)
        self.assertIn("--turn", self.calls("eval", "final")[0])

    def test_the_best_is_not_confirmed_before_all_are_tried(self):
        self.enterContext(mock.patch.dict(agent.LEAST, cost=1000))
        code, said = self.run_it("--finish")
        self.assertEqual(code, 0, said)
        self.assertIn("experiment 1 is next", said)
        self.assertEqual(len(self.calls("search")), 1)

    def test_the_best_is_not_confirmed_without_time_for_it(self):
        self.enterContext(mock.patch.dict(agent.CLOSING, cost=1000))
        code, said = self.run_it("--finish")
        self.assertEqual((code, len(self.tried()), len(self.calls("search"))), (0, 3, 1), said)
        self.assertIn("to confirm the best is next", said)

    def test_an_end_of_the_campaign_is_said(self):
        (self.tools / "over").touch()
        code, said = self.run_it("--finish")
        self.assertEqual((code, self.tried()), (0, []))
        self.assertIn("before experiment 1: the best possible gain is below what counts", said)
        self.assertEqual(len(self.calls("search")), 2, "begun, and its best confirmed all the same")

    def test_a_bad_start_ends_it(self):
        (self.tools / "bad start").touch()
        code, said = self.run_it()
        self.assertEqual((code, self.tried()), (1, []))
        self.assertIn("the start is FAIL: it is wrong", said)

    def test_what_cannot_be_tried_is_refused_before_anything_runs(self):
        def refused(says):
            code, said = self.run_it()
            self.assertEqual(code, 2, said)
            self.assertIn(says, said)
            self.assertEqual(self.calls("search"), [])

        self.write(5, 400)
        refused("has no 4.json")
        self.write(4, 400, why=" \n")
        refused("4.txt is missing or empty")
        self.write(4, 400, name="pase")
        refused("cannot judge " + str(self.experiments / "4.json"))
        for f in self.experiments.iterdir():
            f.unlink()
        refused("has no experiments")

    def test_what_was_tried_stays_as_it_was(self):
        self.run_it()
        self.write(2, 601)
        code, said = self.run_it()
        self.assertEqual(code, 2)
        self.assertIn("2.json is not what it was when experiment 2 was tried", said)
        self.write(2, 600, why="I knew it")
        self.assertIn("2.txt is not what it was", self.run_it()[1])
        self.write(2, 600)
        (self.experiments / "3.json").unlink()
        self.assertIn("a verdict on experiment 3", self.run_it()[1])
        self.assertEqual(len(self.tried()), 3)

    def test_the_published_experiments_can_be_read(self):
        experiments = agent.read(agent.machine.REPO / "docs" / "results" / "agent")
        self.assertGreaterEqual(len(experiments), 6)
        for e in experiments:
            self.assertIsInstance(json.loads(e.config.read_text("utf-8")), dict)

    def test_its_directory_is_for_one_at_a_time(self):
        with sole_use(self.work):
            code, said = self.run_it()
        self.assertEqual((code, self.calls("eval")), (2, []))
        self.assertIn("is in use by another invocation", said)


if __name__ == "__main__":
    unittest.main()
