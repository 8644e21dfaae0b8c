"""Tests of how invocations are kept apart, and of what flags accept."""

import argparse
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import flags
from alone import InUse, sole_use


class Alone(unittest.TestCase):
    def setUp(self):
        self.dir = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.one = self.dir / "one"

    def test_a_directory_is_for_one_at_a_time(self):
        with sole_use(self.one):
            with self.assertRaisesRegex(InUse, "one is in use by another invocation; wait for it, or .* --work"):
                with sole_use(self.one):
                    pass
        with sole_use(self.one):
            pass


class Flags(unittest.TestCase):
    def test_numbers_of_gpus(self):
        self.assertEqual([flags.gpus(text) for text in ("0", "3,1")], [[0], [3, 1]])
        for text in ("", "a,b", "0,x", "0,0", "0,00", "-1", "0,", "1.5", "²"):
            with self.assertRaisesRegex(argparse.ArgumentTypeError, "want numbers of GPUs.*0,1", msg=text):
                flags.gpus(text)

    def test_seconds(self):
        self.assertEqual([flags.seconds(text) for text in ("540", "0.5")], [540, 0.5])
        for text in ("0", "-1", "nan", "inf", "x", ""):
            with self.assertRaisesRegex(argparse.ArgumentTypeError, "want seconds, more than 0", msg=text):
                flags.seconds(text)


if __name__ == "__main__":
    unittest.main()
