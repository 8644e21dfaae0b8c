"""Tests of check_clocks.py."""

import unittest

from check_clocks import found


class TestClocks(unittest.TestCase):
    def test_clocks_are_found(self):
        for line in ("require.Less(t, time.Since(start), time.Second)", "case <-time.After(time.Second):",
                     "ctx, cancel := context.WithTimeout(t.Context(), time.Second)"):
            self.assertEqual(found("a_test.go", "x\n\t" + line), [(2, line)])
        line = "self.assertLess(time.monotonic() - began, 12)"
        self.assertEqual(found("bench/test_a.py", line), [(1, line)])

    def test_others_are_not(self):
        self.assertEqual(found("a_test.go", "time.AfterFunc(time.Second, stop)\ntime.Sleep(time.Second)"), [])
        self.assertEqual(found("bench/test_a.py", "began = time.monotonic()\nself.assertEqual(code, 0)"), [])


if __name__ == "__main__":
    unittest.main()
