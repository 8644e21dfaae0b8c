"""Tests of section prompts with a PyTorch and an amkc that only look the part: no GPU, numpy alone."""

import sys
import unittest
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parent))

import prompts
import test_workshop

VOCAB = 512  # of the amkc of test_workshop
ROW = "prompts/llama-3.2-1b-bf16-seed1-max33024-512"

PEER = """\
    #!{python} -IS
    import array, json, pathlib, sys
    here = pathlib.Path(__file__).parent
""" + test_workshop.SAVE + """\
    for line in sys.stdin:
        r = json.loads(line)
        answer = {{"ok": True}}
        if r["do"] == "reference":
            save(r["fp32"], r["ids"], 0); save(r["own"], r["ids"], 1e-3)
        else:
            assert r["do"] == "prefill" and r["times"] == 5
            with open(here / "turns", "a") as f: f.write(f"transformers:{{len(r['ids'])}} ")
            answer |= {{"ms": [30.0, 10.0, 20.0], "token": 1}}
            if (here / "fails").exists(): answer = {{"ok": False, "error": "out of memory"}}
        print(json.dumps(answer), flush=True)
"""
DEVICE = """\
    #!{python} -IS
    import json, pathlib, sys
    here = pathlib.Path(__file__).parent
    if sys.argv[2] == "passes":
        with open(here / "turns", "a") as f: f.write("passes:" + sys.argv[sys.argv.index("--positions") + 1] + " ")
        wrong = "case 1: position 9" if (here / "differs").exists() else ""
        compared = 0 if (here / "none").exists() else 700
        print(json.dumps({{"difference": wrong, "passed": not wrong, "compared": compared}}))
        sys.exit(1 if wrong else 0)
    assert sys.argv[2] == "bench"
    n = int(sys.argv[sys.argv.index("--prompt") + 1])
    with open(here / "turns", "a") as f: f.write(f"amkc:{{n}} ")
    passed = not (here / "check").exists()
    print(json.dumps({{"check": {{"passed": passed, "failures": ["logits"]}},
                      "prompt": {{"tokens": n, "first_token_us": {{"median": 8000.0}}, "bytes": 2097152,
                                 "clocks": {{"sm_mhz": {{"min": 1755, "max": 1980}}}}}}}}))
"""


class Prompts(test_workshop.Fake):
    def setUp(self):
        super().setUp()
        self.enterContext(mock.patch.object(prompts, "config", lambda model: {"vocab_size": VOCAB}))
        self.script("device", DEVICE)
        (self.tools_dir / "torch_peer.py").write_text(
            "\n".join(line[4:] for line in PEER.format(python=sys.executable, vocab=VOCAB).splitlines()))
        self.enterContext(mock.patch.object(prompts, "__file__", str(self.tools_dir / "prompts.py")))

    def row(self):
        code, out = self.results("--only", ROW)
        return code, out, self.rows()[ROW]

    def turns(self):
        path = self.tools_dir / "turns"
        return path.read_text().split() if path.exists() else []

    def test_both_take_turns(self):
        code, out, row = self.row()
        self.assertEqual((code, row["passed"]), (0, True), out)
        self.assertEqual(self.turns(), ["passes:512"] + ["amkc:512", "transformers:512"] * prompts.ROUNDS)
        self.assertEqual((row["first_token_ms"], row["transformers_ms"], row["times_amkc"]), (8.0, 20.0, 2.5))
        self.assertEqual((row["prompt"], row["compared"], row["argmax_wrong"]), (512, 700, 0))
        self.assertEqual(row["round_clocks"], [{"sm_mhz": {"min": 1755, "max": 1980}}] * prompts.ROUNDS)
        self.assertEqual(row["bytes"], 2 << 20)
        self.assertIn("| 512 | 8.0 | 20.0 | 2.50 | 2,097,152 | 700 | 0.000 | 3 |",
                      (self.dir / "out" / "fake.md").read_text())

    def test_there_is_no_time_without_correctness(self):
        for switch, finding in (("differs", "case 1: position 9"), ("none", "no logits of passes were compared")):
            self.switch(switch)
            code, out, row = self.row()
            self.assertEqual((code, row["passed"]), (1, False), out)
            self.assertIn(finding, row["findings"][0])
            self.assertNotIn("first_token_ms", row)
            self.assertEqual(self.turns(), ["passes:512"])
            (self.tools_dir / "turns").unlink()
            self.switch(switch, on=False)

    def test_a_check_that_fails_is_a_failure(self):
        self.switch("check")
        code, out, row = self.row()
        self.assertEqual((code, row["passed"]), (1, False), out)
        self.assertIn("the kernel and the plain kernels differ", row["findings"][0])

    def test_a_rival_that_fails_costs_its_own_numbers(self):
        self.switch("fails")
        code, out, row = self.row()
        self.assertEqual((code, row["passed"], row["not_run"]), (1, None, "transformers: out of memory"), out)
        self.assertEqual((row["first_token_ms"], len(row["round_ms"])), (8.0, prompts.ROUNDS))
        self.assertEqual(self.turns().count("transformers:512"), 1)

    def test_the_rows_of_a_build_are_one_measurement(self):
        code, out = self.results("--only", "prompts/llama-3.2-1b-*")
        self.assertEqual(code, 0, out)
        self.assertEqual(self.turns(), ["passes:8192"] + [f"{who}:{n}" for n in prompts.LENGTHS for who in (
            "amkc", "transformers")] * prompts.ROUNDS)
        rows = self.rows()
        self.assertEqual([r["prompt"] for r in rows.values()], list(prompts.LENGTHS))
        self.assertEqual(len({tuple(r["steps"]) for r in rows.values()}), 1)

    def test_a_failure_is_that_of_all_rows_of_a_build(self):
        self.switch("check")
        code, out = self.results("--only", "prompts/llama-3.2-1b-*")
        self.assertEqual(code, 1, out)
        self.assertEqual(self.turns(), ["passes:8192", "amkc:512"])
        self.assertEqual([r["passed"] for r in self.rows().values()], [False] * 3)

    def test_quantised_matrices_have_no_rival(self):
        row = "prompts/llama-3.1-8b-bf16-seed1-max33024-int4-2048"
        code, out = self.results("--only", row)
        self.assertEqual((code, self.rows()[row]["passed"]), (0, True), out)
        self.assertEqual(self.turns(), ["passes:2048"] + ["amkc:2048"] * prompts.ROUNDS)
        self.assertNotIn("transformers_ms", self.rows()[row])


if __name__ == "__main__":
    unittest.main()
