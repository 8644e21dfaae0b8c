"""Tests of how bench/candidates.py judges candidates for defaults, goes on, and publishes, with an amkc that only looks
like one."""

import contextlib
import io
import json
import os
import sys
import tempfile
import textwrap
import unittest
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parent))

import candidates
import candidatespage
import running
from alone import sole_use
from defaults import Candidate, Shape, splits

# amkc that finds 32 splits faster, rejects 64, and fails with 12.
AMKC = """\
    #!{python} -IS
    import json, pathlib, sys
    here, args = pathlib.Path(__file__).parent, sys.argv[1:]
    def after(flag): return args[args.index(flag) + 1]
    with open(here / "calls", "a") as f: f.write(json.dumps(args) + "\\n")
    pathlib.Path(after("--key")).write_text("a key")
    config = json.loads(pathlib.Path(after("--config")).read_text()) if "--config" in args else {{}}
    n = config.get("tiling", {{}}).get("attention", {{}}).get("max_splits", 16)
    if "--build-only" in args: print(json.dumps({{"built": True}})); sys.exit(0)
    if n == 12: print(json.dumps({{"errors": [{{"message": "it is broken"}}]}})); sys.exit(1)
    r = {{"mean": 0.9, "low": 0.89, "high": 0.91}}
    us = {{"median": 9, "p10": 9, "p90": 9}}
    v = {{"class": "PASS", "target": after("--target"), "device": after("--device") if "--device" in args else "cost",
         "settings": {{"tiling.attention.max_splits": n}}, "decision": "keep" if n == 32 else "revert", "ratio": r,
         "at": [{{"position": int(p), "ratio": r, "candidate_us": us, "baseline_us": us}}
                for p in after("--position").split(",")] if "--position" in args else [],
         "band": 0.01, "machine": "a GPU"}}
    if n == 64: v |= {{"class": "REJECTED", "decision": None, "ratio": None, "at": [], "reason": {{"code": "AMK6109"}}}}
    print(json.dumps({{"verdict": v}}))
    sys.exit(v["class"] != "PASS")
"""

FEW = (Shape("qwen2.5-1.5b", "2048,8192", 8448), Shape("smollm2-135m", "2048,8000", 8192))
PROPOSED = (Candidate("splits-32", "a place", splits(32), FEW), Candidate("splits-64", "a place", splits(64), FEW[:1]),
            Candidate("splits-12", "another", splits(12), (Shape("llama-3.2-1b", "2048", 8448),)),
            Candidate("splits-8", "a third", splits(8), FEW, "no default"))


class Candidates(unittest.TestCase):
    def setUp(self):
        for module in (candidates, candidatespage):
            self.enterContext(mock.patch.object(module, "CANDIDATES", PROPOSED))
        self.tools, self.work, self.docs = (Path(self.enterContext(tempfile.TemporaryDirectory())) for _ in range(3))
        amkc = self.tools / "amkc"
        amkc.write_text(textwrap.dedent(AMKC).format(python=sys.executable), encoding="utf-8")
        amkc.chmod(0o755)
        self.enterContext(contextlib.chdir(os.getcwd()))
        self.enterContext(mock.patch.object(running, "ROOT", self.tools / "checkout"))
        self.out = self.work / "out" / "candidates.json"

    def run_it(self, *args):
        out = io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out), \
                mock.patch.dict(candidates.LEAST, {"cuda": 1}):
            code = candidates.main(["--tools", str(self.tools), "--target", "h100", "--budget", "30", "--work",
                                    str(self.work), "--out", str(self.out.parent), "--gpus", "0,1", "--docs",
                                    str(self.docs), *args])
        return code, out.getvalue()

    def calls(self, *having):
        path = self.tools / "calls"
        lines = map(json.loads, path.read_text("utf-8").splitlines() if path.exists() else [])
        return [c for c in lines if all(h in c for h in having)]

    def test_each_candidate_is_built_and_judged_over_the_defaults_once(self):
        code, out = self.run_it("--only", "qwen2.5-1.5b/*")
        self.assertEqual(code, 0, out)
        self.assertIn("2 of 2", out)
        rows = candidates.read(self.out)
        self.assertEqual({n: (r["class"], r["decision"], r.get("code")) for n, r in rows.items()},
                         {"h100/qwen2.5-1.5b/splits-32/2": ("PASS", "keep", None),
                          "h100/qwen2.5-1.5b/splits-64/2": ("REJECTED", None, "AMK6109")})
        self.assertEqual(len(self.calls("--build-only")), 2)
        final = self.calls("final")
        self.assertEqual(len(final), 2)
        self.assertFalse([c for c in final if "--baseline" in c])
        self.assertTrue(all("2048,8192" in c for c in final))
        self.run_it("--only", "qwen2.5-1.5b/*")
        self.assertEqual(len(self.calls("final")), 2, "they are there")
        elsewhere = self.work / "elsewhere.json"
        self.out.rename(elsewhere)
        self.run_it("--only", "qwen2.5-1.5b/*", "--only", "smollm2-135m/*", "--resume", str(elsewhere))
        self.assertEqual(len(self.calls("final")), 3)
        self.assertEqual(len(candidates.read(self.out)), 3, "with what was made elsewhere")

    def test_a_prediction_is_in_the_way_of_no_measurement(self):
        self.run_it("--only", "qwen2.5-1.5b/splits-32", "--device", "cost")
        self.assertEqual(candidates.read(self.out)["h100/qwen2.5-1.5b/splits-32/2"]["device"], "cost")
        self.run_it("--only", "qwen2.5-1.5b/splits-32")
        self.assertEqual(candidates.read(self.out)["h100/qwen2.5-1.5b/splits-32/2"]["device"], "cuda")

    def test_a_verdict_over_other_defaults_is_made_again(self):
        for n in (1, 2, 2):
            with mock.patch.object(candidates, "DEFAULTS", n):
                self.run_it("--only", "qwen2.5-1.5b/splits-32")
        self.assertEqual(len(self.calls("final")), 2)
        self.assertEqual([r["defaults"] for r in candidates.read(self.out).values()], [1, 2])

    def test_one_that_cannot_be_entered_is_not_the_end_of_the_others(self):
        def row_of(job, v):
            if job.candidate.name == "splits-32":
                raise KeyError("ratio")
            return {"device": "cuda", "class": "PASS", "at": [], "code": None}
        with mock.patch.object(candidates, "row_of", row_of):
            code, out = self.run_it("--only", "qwen2.5-1.5b/*", "--gpus", "0")
        self.assertEqual(code, 1)
        self.assertIn("KeyError", out)
        self.assertEqual(list(candidates.read(self.out)), ["h100/qwen2.5-1.5b/splits-64/2"])

    def test_what_fails_is_said_and_is_no_verdict(self):
        code, out = self.run_it("--only", "llama-3.2-1b/splits-12")
        self.assertEqual(code, 1)
        self.assertIn("llama-3.2-1b-splits-12: amkc eval failed", out)
        self.assertIn("it is broken", out)
        self.assertFalse(self.out.exists())

    def test_nothing_is_begun_that_there_is_no_time_for(self):
        with mock.patch.object(running.Runner, "left", return_value=0.5):
            code, out = self.run_it("--only", "qwen2.5-1.5b/splits-32")
        self.assertEqual((code, self.calls("final")), (0, []))
        self.assertIn("0 of 1", out)

    def test_measured_verdicts_are_published_and_predictions_are_not(self):
        self.run_it("--only", "qwen2.5-1.5b/*")
        published = self.docs / "results" / "candidates.json"
        self.assertEqual(self.run_it("--take", str(self.out))[0], 0)
        self.assertEqual(len(candidates.read(published)), 2)
        page = (self.docs / "campaigns.md").read_text("utf-8")
        self.assertIn("| qwen2.5-1.5b | h100 | 2 | 0.9000 (0.8900 to 0.9100) | 0.9000 at 2,048, 0.9000 at 8,192 | keep "
                      "|", page)
        self.assertIn("| qwen2.5-1.5b | h100 | 2 | REJECTED, AMK6109 |", page)
        self.out.unlink()
        self.run_it("--only", "smollm2-135m/*", "--device", "cost")
        self.run_it("--take", str(self.out))
        self.assertEqual(len(candidates.read(published)), 2)

    def test_what_is_no_file_of_candidates_is_refused(self):
        for text in (b"{", b"[]", b'{"schema": "amkc.campaigns/1"}', b'{"schema": "amkc.candidates/1"}',
                     b"\x1f\x8b\xff"):
            (self.work / "bad.json").write_bytes(text)
            for flag in ("--resume", "--take"):
                code, out = self.run_it(flag, str(self.work / "bad.json"))
                self.assertEqual(code, 2)
                self.assertIn("want what bench/candidates.py has written", out)

    def test_its_directory_is_for_one_at_a_time(self):
        with sole_use(self.work):
            code, said = self.run_it()
        self.assertEqual((code, self.calls()), (2, []))
        self.assertIn("is in use by another invocation", said)


if __name__ == "__main__":
    unittest.main()
