"""Which runs of a fuzz target count as failed."""

import unittest

import fuzz

ENDED = "--- FAIL: FuzzLoad (15.06s)\n    context deadline exceeded\nFAIL\nexit status 1\n"
CRASHED = "--- FAIL: FuzzLoad (9.1s)\n    panic: x\n\n    Failing input written to testdata/fuzz/FuzzLoad/ab\n"


class Failed(unittest.TestCase):
    def test_exit_code(self):
        self.assertFalse(fuzz.failed(0, "PASS\n"))
        self.assertTrue(fuzz.failed(1, "build failed\n"))

    def test_end_of_time(self):
        self.assertFalse(fuzz.failed(1, ENDED))
        self.assertTrue(fuzz.failed(1, CRASHED))
        self.assertTrue(fuzz.failed(1, CRASHED + ENDED), "an input was saved")
        self.assertTrue(fuzz.failed(1, "--- FAIL: FuzzX (1s)\n    seed: context deadline exceeded\n"))


if __name__ == "__main__":
    unittest.main()
