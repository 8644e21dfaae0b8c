"""Tests of picture.py, and of the picture that the README shows."""

import subprocess
import sys
import unittest
from pathlib import Path

HERE = Path(__file__).parent


def run(script, *flags, **kwargs):
    return subprocess.run([sys.executable, str(HERE / script), *flags], stdout=subprocess.PIPE, text=True, check=True,
                          encoding="utf-8", **kwargs).stdout


class Picture(unittest.TestCase):
    def test_text_is_escaped(self):
        self.assertIn("&lt;a&gt;", run("picture.py", input="$ x\n<a>\n"))

    def test_the_demo(self):
        drawn = run("picture.py", input=run("demo.py", "--picture"))
        self.assertEqual(drawn.splitlines(), (HERE.parent / "docs/img/demo.svg").read_text("utf-8").splitlines(),
                         "make goldens draws it again")


if __name__ == "__main__":
    unittest.main()
