"""Tests of picture.py."""

import subprocess
import sys
import unittest
from pathlib import Path


class Picture(unittest.TestCase):
    def test_text_is_escaped(self):
        drawn = subprocess.run([sys.executable, str(Path(__file__).with_name("picture.py"))], input="$ x\n<a>\n",
                               capture_output=True, text=True, check=True)
        self.assertIn("&lt;a&gt;", drawn.stdout)


if __name__ == "__main__":
    unittest.main()
