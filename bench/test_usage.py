"""Tests of what scripts of bench say where files are damaged or arguments make no sense (numpy, and what bench imports,
alone)."""

import argparse
import contextlib
import io
import json
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import report
import results
from test_results import HERE, row


def said(main, *args):
    """The exit code of a script, and what it prints on stderr, in one line."""
    with contextlib.redirect_stderr(io.StringIO()) as err, contextlib.redirect_stdout(io.StringIO()):
        try:
            code = main(list(map(str, args)))
        except SystemExit as e:
            code = e.code
    return code, " ".join(err.getvalue().split())


class Damaged(unittest.TestCase):
    def setUp(self):
        self.dir = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.path = self.dir / "h200.json"

    def test_a_damaged_file_is_named_with_the_place(self):
        good = {"schema": "amkc.results/1", "environments": {"A": HERE}}
        bad = row("bench/a") | {"environment": "B"}
        for text, says in (('{"schema":\n', ":2:1: Expecting value; want JSON"), ("[]", "it has a list; want"),
                           ("\udcff", "byte 0 is not UTF-8"),
                           ('{"schema": "amkc.results/1"}', "KeyError: 'environments'; want environments by letter"),
                           (json.dumps(good | {"rows": [{}]}), "KeyError: 'id'; want"),
                           (json.dumps(good | {"rows": [bad]}), "row bench/a: want one of the environments"),
                           (json.dumps(good | {"rows": 5}), "TypeError: .*; want"),
                           ('{"schema": "amkc.results/2"}', "'amkc.results/2'; 'amkc.results/1' is needed")):
            self.path.write_bytes(text.encode("utf-8", "surrogateescape"))
            with self.assertRaisesRegex(report.Damaged, f"^{self.dir}/h200.json.*{says}"):
                report.Store(self.path)
            for main, name, *args in ((results.main, "results", "--render", "--out", self.dir),
                                      (results.main, "results", "--merge", self.path, "--out", self.dir / "other")):
                code, words = said(main, *args)
                self.assertEqual(code, 2, words)
                self.assertTrue(words.startswith(f"{name}.py: error: {self.path}:"), words)
        code, words = said(results.main, "--out", self.dir / "x", "--merge", self.dir)
        self.assertEqual((code, words), (2, f"results.py: error: {self.dir}: Is a directory; want a file of JSON"))


class Usage(unittest.TestCase):
    def test_bad_usage(self):
        for args, says in ((("--gpus", "0,x"), "argument --gpus: '0,x': want numbers of GPUs"),
                           (("--gpus", "0,0"), "each once"), (("--budget", "0"), "want seconds, more than 0"),
                           (("--budget", "-5"), "want seconds, more than 0"),
                           (("--merge", "a", "--name", "b", "--list"), "makes no rows, and --list, --name would"),
                           (("--merge", "a", "--section", "bench", "--only", "x"), "--section, --only would"),
                           (("--merge", "a", "--render"), "--render would")):
            code, words = said(results.main, *args)
            self.assertEqual(code, 2)
            self.assertIn(says, words)

    def test_an_empty_selection(self):
        for more in ([], ["--list"]):
            self.assertEqual(said(results.main, "--only", "nothing", *more),
                             (2, "results.py: error: no row is selected; --list prints all ids"))


class Flags(unittest.TestCase):
    def test_numbers_of_gpus(self):
        self.assertEqual([results.gpu_numbers(text) for text in ("0", "3,1")], [[0], [3, 1]])
        for text in ("", "a,b", "0,x", "0,0", "0,00", "-1", "0,", "1.5", "²"):
            with self.assertRaisesRegex(argparse.ArgumentTypeError, "want numbers of GPUs.*0,1", msg=text):
                results.gpu_numbers(text)

    def test_seconds(self):
        self.assertEqual([results.seconds(text) for text in ("540", "0.5")], [540, 0.5])
        for text in ("0", "-1", "nan", "inf", "x", ""):
            with self.assertRaisesRegex(argparse.ArgumentTypeError, "want seconds, more than 0", msg=text):
                results.seconds(text)


if __name__ == "__main__":
    unittest.main()
