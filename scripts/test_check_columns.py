"""Tests of scripts/check_columns.py."""

import unittest

import check_columns


class Columns(unittest.TestCase):
    def numbers(self, path, *lines):
        return [number for number, *_ in check_columns.wide(path, "\n".join(lines))]

    def test_limits(self):
        for path, most in (("ir/op.go", 120), ("bench/x.py", 120), ("docs/x.md", 120), ("testdata/x.go", None),
                           ("refvm/testdata/x.md", None), ("docs/results/README.md", None), ("go.sum", None),
                           ("testdata/golden/a/pages.h", 100), ("testdata/golden/a/Makefile", 100),
                           ("testdata/golden/a/program.json", None), ("runtime/cuda/amk/ring.cuh", 100)):
            self.assertEqual(check_columns.limit(path), most, path)

    def test_widths(self):
        self.assertEqual(self.numbers("a.go", "x" * 120, "x" * 121, "\t" + "x" * 117, "µ" * 120), [2, 3])
        self.assertEqual(self.numbers("testdata/golden/a/pages.h", "x" * 100, "x" * 101), [2])

    def test_markdown(self):
        wide = " ".join(["word"] * 30)
        self.assertEqual(self.numbers("a.md", wide, "| " + wide + " |", "    " + wide, "```", wide, "```", wide,
                                      "![" + wide + "](x.png)", "<!-- rows -->", wide, "<!-- end of rows -->", wide),
                         [1, 7, 12])


if __name__ == "__main__":
    unittest.main()
