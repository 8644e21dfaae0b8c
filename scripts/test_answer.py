"""Tests of answer.py and picture.py: python3 -m unittest discover scripts."""

import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROW = {"section": "first_answer", "model": "m", "passed": True, "launcher": False, "compile_s": 61.2,
       "compiled": ["build/results/first_answer/m/build: m proved", "warning: x"], "message": "hello",
       "answer": "<a>\n", "said": ["3 written"], "first_text_s": 1.25}


def draw(rows, model="m"):
    with tempfile.TemporaryDirectory() as work:
        path = Path(work) / "gpu.json"
        path.write_text(json.dumps({"rows": rows}), encoding="utf-8")
        return subprocess.run([sys.executable, str(HERE / "answer.py"), str(path), model], capture_output=True,
                              text=True, check=False)


class Answer(unittest.TestCase):
    def test_a_row(self):
        out = draw([ROW])
        self.assertEqual(out.stdout.splitlines(), [
            "$ amkc example/m -o build/", "build: m proved", "warning: x", "// 61 s", "", "$ amkc chat build/ --stats",
            "> hello", "<a>", "3 written", "// 1.2 s from the start of the program to the first text"])
        self.assertIn("$ build/m chat --stats", draw([ROW | {"launcher": True}]).stdout)
        drawn = subprocess.run([sys.executable, str(HERE / "picture.py")], input=out.stdout, capture_output=True,
                               text=True, check=True)
        self.assertIn("&lt;a&gt;", drawn.stdout)

    def test_no_row(self):
        for rows in ([], [ROW | {"passed": False}], [ROW | {"section": "serving"}], [ROW | {"model": "n"}]):
            self.assertEqual(draw(rows).returncode, 1)


if __name__ == "__main__":
    unittest.main()
