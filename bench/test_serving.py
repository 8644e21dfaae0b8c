"""Tests of the sections serving, clients and first_answer, and of the models that they are made with: no GPU."""

import json
import os
import sys
import tempfile
import textwrap
import types
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import first_answer
import library
import machine
import serving
import spoken
import tables
from workshop import Budget, Case, StepFailed, Workshop

os.chdir(machine.REPO)

TIMES = {"first_token_us": {"p50": 800, "p99": 900}, "between_us": {"p50": 92, "p99": 120},
         "us_per_token": {"p50": 92, "p99": 93}}
SERVED = {"prompt": 32, "tokens": 256, "rounds": 10, "clients": 8, "sequences": 1, "engine": TIMES, "server": TIMES,
          "server_clients": TIMES}
HELD = {"goroutines": 7, "heap": 12_345_678}
ASKED = {"requests": 1000, "clients": 32, "answered": 700, "cancelled": 100, "bad": 200, "busy": 40, "differing": 0,
         "difference": "", "statuses": {"200": 750}, "findings": None, "sequences": 8, "before": HELD, "after": HELD,
         "passed": True}

PHASE = {"between_ms": {"p50": 4.1, "p99": 44.0}, "pause_ms": {"p50": 43.0, "p99": 46.0}, "longest_ms": 47.5,
         "tokens": 700, "tokens_per_second": 160.0}
LOADED = {"sequences": 8, "others": 7, "pause_ms": 50, "parts": 24.0, "before": PHASE, "during": PHASE, "after": PHASE,
          "first_token_ms": {"p50": 1100, "p99": 1200}, "alone_first_token_ms": {"p50": 900, "p99": 950},
          "second_turn": {"conversation": 6000, "message": 64, "cached": 5999,
                          "first_token_ms": {"p50": 10, "p99": 11}, "without_reuse_ms": {"p50": 600, "p99": 610}},
          "mixed": {"tokens_per_second": 500, "prompt_tokens_per_second": 6000}, "differing": []}

AMKC = """\
    #!{python} -IS
    import json, pathlib, sys, time
    args = sys.argv[1:]
    if args[0] == "chat":
        said = sys.stdin.read()
        mode = pathlib.Path(args[1], "mode").read_text()
        print("loaded", file=sys.stderr)
        if mode == "broken": sys.exit("x: error: there is no GPU")
        if mode == "silent": sys.exit(0)
        print(said.strip(), end="", flush=True)
        time.sleep(0.2)
        print(" and so on")
        print("12 tokens, 5 a second", file=sys.stderr)
    else:
        out = pathlib.Path(args[args.index("-o") + 1])
        out.mkdir(parents=True)
        (out / "mode").write_text(pathlib.Path(__file__).with_name("mode").read_text())
        (out / "amkc.manifest.json").write_text(json.dumps({{"facts": {{"model": {{"name": "m"}}}}}}))
        print("model " + args[0] + "\\npredicted\\nbuild\\nnext")
        print("build: a warning", file=sys.stderr)
"""


class Judged(unittest.TestCase):
    def test_a_server_costs_little(self):
        row = serving.judge_serving(SERVED | {"cost_per_token_%": 2.4})
        self.assertTrue(row["passed"])
        self.assertEqual(row["cost_percent"], 2.4)
        row = serving.judge_serving(SERVED | {"cost_per_token_%": 3.0})
        self.assertFalse(row["passed"])
        self.assertIn("3 % are allowed", row["findings"][0])

    def test_clients_get_what_they_would_alone(self):
        self.assertTrue(serving.judge_clients(ASKED)["passed"])
        row = serving.judge_clients(ASKED | {"passed": False, "findings": ["the heap has grown"]})
        self.assertEqual((row["passed"], row["findings"]), (False, ["the heap has grown"]))
        for wrong in ({"requests": 999}, {"passed": False}):
            self.assertFalse(serving.judge_clients(ASKED | wrong)["passed"])

    def test_a_long_prompt_does_not_stop_others(self):
        row = serving.judge_load(json.loads(json.dumps(LOADED)))
        self.assertTrue(row["passed"])
        self.assertEqual(row["times_reused"], 60)
        cells = tables.TABLES["load"].columns
        self.assertEqual(cells["during, p99"].format(**row), "44.0")
        self.assertEqual([c for c in cells.values() if not c.format(**row)], [])
        for wrong, says in (({"differing": ["a text"]}, "differs: a text"), ({"pause_ms": 45}, "wait 46.0 ms"),
                            ({"second_turn": LOADED["second_turn"] | {"cached": 0}}, "0 tokens of a conversation")):
            row = serving.judge_load(json.loads(json.dumps(LOADED | wrong)))
            self.assertFalse(row["passed"])
            self.assertIn(says, row["findings"][0])

    def test_examples_of_the_library(self):
        row = library.judge_library(0, "Ran 1 test in 9.8s\n\nOK")
        self.assertTrue(row["passed"])
        self.assertGreater(row["examples"], 20)
        for code, said in ((1, "Expected: 1"), (0, "Ran 0 tests in 0.0s\n\nOK")):
            self.assertFalse(library.judge_library(code, said)["passed"])


class Spoken(unittest.TestCase):
    def test_a_tokenizer_of_any_size(self):
        for vocab in (256, 257, 5000):
            made = spoken.tokenizer(vocab)["model"]
            self.assertEqual(sorted(made["vocab"].values()), list(range(vocab)))
            self.assertEqual(len(made["merges"]), vocab - 256)
            for a, b in made["merges"]:
                self.assertLess(max(made["vocab"][a], made["vocab"][b]), made["vocab"][a + b])
        self.assertEqual(spoken.tokenizer(300), spoken.tokenizer(300))
        with self.assertRaisesRegex(ValueError, "256 bytes"):
            spoken.tokenizer(255)

    def test_what_is_there_stays(self):
        with tempfile.TemporaryDirectory() as work:
            out = spoken.make("testdata/models/pycoder-5m", Path(work) / "a" / "out")
            self.assertEqual((out / "tokenizer.json").read_bytes(),
                             Path("testdata/models/pycoder-5m/tokenizer.json").read_bytes())
            self.assertEqual((out / "chat_template.jinja").read_bytes(),
                             Path("testdata/models/pycoder-5m/chat_template.jinja").read_bytes())
            self.assertEqual(spoken.make("/nowhere", out), out, "it is complete")
            out = spoken.make("testdata/models/zoo/llama-gqa", Path(work) / "b")
            self.assertEqual((out / "chat_template.jinja").read_text(), spoken.TEMPLATE)


class FirstAnswer(unittest.TestCase):
    def setUp(self):
        self.dir = Path(self.enterContext(tempfile.TemporaryDirectory()))
        amkc = self.dir / "amkc"
        amkc.write_text(textwrap.dedent(AMKC).format(python=sys.executable))
        amkc.chmod(0o755)
        self.shop = Workshop(types.SimpleNamespace(amkc=amkc, nvcc=None), self.dir / "work", "h100", 1, Budget(None))
        self.addCleanup(self.shop.close)

    def row(self, mode):
        (self.dir / "mode").write_text(mode)
        return first_answer.first_answer_row(self.shop, Case("testdata/models/pycoder-5m", "bf16"), "hello")

    def test_an_answer(self):
        for _ in range(2):  # the second time the checkpoint is there, and is compiled again
            row = self.row("well")
        self.assertTrue(row["passed"], row["findings"])
        self.assertEqual((row["answer"], row["launcher"]), ("hello and so on\n", False))
        self.assertLess(row["first_text_s"] + 0.1, row["answer_s"])
        self.assertAlmostEqual(row["total_s"], row["compile_s"] + row["first_text_s"])
        self.assertEqual(row["said"], ["12 tokens, 5 a second"])
        self.assertEqual(row["compiled"],
                         ["model example/pycoder-5m", "predicted", "build", "next", "build: a warning"])
        self.assertGreater(row["checkpoint_bytes"], 10e6)
        self.assertIn("HF_HOME=", self.shop.log[-2])
        json.dumps(row, allow_nan=False)

    def test_no_answer(self):
        self.assertIn("no text", self.row("silent")["findings"][0])
        with self.assertRaisesRegex(StepFailed, "there is no GPU"):
            self.row("broken")


if __name__ == "__main__":
    unittest.main()
