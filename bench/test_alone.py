"""Tests of how invocations are kept apart, and of what flags accept."""

import argparse
import multiprocessing
import os
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import flags
from alone import InUse, leading, point, sole_use


def lead(link, to):
    """Has a link for a moment."""
    with leading(link, to):
        return os.readlink(link)


class Alone(unittest.TestCase):
    def setUp(self):
        self.dir = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.link, self.one, self.two = self.dir / "link", self.dir / "one", self.dir / "two"

    def test_a_directory_is_for_one_at_a_time(self):
        with sole_use(self.one):
            with self.assertRaisesRegex(InUse, "one is in use by another invocation; wait for it, or .* --work"):
                with sole_use(self.one):
                    pass
        with sole_use(self.one):
            pass

    def test_a_link_that_is_in_use_leads_nowhere_else(self):
        with leading(self.link, self.one):
            with self.assertRaisesRegex(InUse, f"leads to {self.one}, and an invocation there uses it.*{self.two}"):
                lead(self.link, self.two)
            self.assertEqual(os.readlink(self.link), str(self.one))
            self.assertEqual(lead(self.link, self.one), str(self.one), "the same checkout shares it")
            with self.assertRaises(InUse, msg="one of two has ended"):
                lead(self.link, self.two)
        self.assertEqual(lead(self.link, self.two), str(self.two))

    def test_another_process_counts(self):
        with leading(self.link, self.one), multiprocessing.get_context("spawn").Pool(1) as pool:
            with self.assertRaises(InUse):
                pool.apply(lead, (self.link, self.two))

    def test_what_is_no_link_is_left_alone(self):
        self.link.mkdir()
        with self.assertRaisesRegex(InUse, "link is no link; want it moved away"):
            lead(self.link, self.one)
        self.assertTrue(self.link.is_dir())

    def test_what_cannot_be_locked_or_replaced_is_said(self):
        self.link.with_name("link.lock").mkdir()
        with self.assertRaisesRegex(InUse, "link.lock cannot be opened: Is a directory"):
            lead(self.link, self.one)
        with self.assertRaisesRegex(InUse, "cannot be made to lead to .*: No such file"):
            point(self.dir / "none/link", self.one)


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
