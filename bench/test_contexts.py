"""Tests of section contexts, with tools that only look like amkc. numpy alone."""

import sys
import unittest
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parent))

import contexts
import test_workshop
from workshop import OutOfTime

# device turns, which fails at a position of its own, and reads prompts where it is asked to.
DEVICE = """\
    #!{python} -IS
    import json, pathlib, sys
    args = sys.argv[1:]
    def after(flag): return args[args.index(flag) + 1]
    with open(pathlib.Path(__file__).parent / "calls", "a") as f: f.write("turns\\n")
    for p in map(int, after("--positions").split(",")):
        t = {{"build": args[-1], "position": p, "round": 0}}
        report = {{"position": p, "latency_us": {{"median": 100.0 + p}}, "share_of_ceiling": 0.9}}
        if "--prompt" in args:
            report["prompt"] = {{"tokens": int(after("--prompt")), "first_token_us": {{"median": 79500.0}}}}
        t |= {{"error": "a stall"}} if p == 32752 else {{"report": report}}
        print(json.dumps(t))
    sys.exit(1)
"""


class Contexts(test_workshop.Fake):
    def setUp(self):
        super().setUp()
        self.script("device", DEVICE)

    def test_a_build_is_opened_once_for_its_rows(self):
        code, out = self.results("--only", "contexts/llama-3.2-1b-*")
        self.assertEqual((code, self.calls().count("turns")), (1, 1), out)
        rows = {i.rpartition("-")[2]: r for i, r in self.rows().items()}
        self.assertEqual({p: r["passed"] for p, r in rows.items()}, {"128": True, "8192": True, "32752": False})
        self.assertEqual(rows["32752"]["findings"], ["a stall"])
        self.assertEqual((rows["8192"]["position"], rows["8192"]["latency_us"]), (8192, {"median": 8292.0}))
        self.assertNotIn("first_token_ms", rows["128"])
        self.assertIn("device turns --positions 128,8192,32752 --rounds 1 --launches 100", rows["8192"]["steps"][-1])

    def test_only_rows_that_are_to_be_made_are_measured(self):
        _, out = self.results("--only", "contexts/llama-3.2-1b-*-8192")
        self.assertEqual(len(self.rows()), 1, out)
        self.assertIn("--positions 8192 ", next(iter(self.rows().values()))["steps"][-1])

    def test_mixtures_of_experts_read_a_prompt(self):
        code, out = self.results("--only", "contexts/gpt-oss-20b-*")
        self.assertEqual(code, 0, out)
        self.assertEqual([(r["prompt"], r["first_token_ms"]) for r in self.rows().values()], [(2048, 79.5)] * 2)

    def test_a_measurement_that_fails_is_not_repeated(self):
        with mock.patch.object(contexts, "take_turns", mock.Mock(side_effect=RuntimeError("no such GPU"))) as turns:
            code, _ = self.results("--only", "contexts/llama-3.2-1b-*")
        self.assertEqual((code, turns.call_count), (1, 1))
        self.assertEqual([r["findings"] for r in self.rows().values()], [["RuntimeError: no such GPU"]] * 3)

    def test_a_measurement_without_the_time_is_left(self):
        with mock.patch.object(contexts, "take_turns", mock.Mock(side_effect=OutOfTime)):
            code, out = self.results("--only", "contexts/gpt-oss-20b-*")
        self.assertEqual((code, self.rows()), (1, {}))
        self.assertIn("2 rows are left", out)


if __name__ == "__main__":
    unittest.main()
