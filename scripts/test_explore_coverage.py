"""Tests of scripts/explore_coverage.py."""

import contextlib
import io
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import explore_coverage as coverage

KERNEL = """#include "amk/one.cuh"
extern "C" int kernel(int n) { return one(n); }
"""
HEADER = """inline int one(int n) {
  if (n > 0)
    return 1;
  return 2;
}
"""


class Coverage(unittest.TestCase):
    def test_spans(self):
        self.assertEqual(coverage.spans([9, 3, 4, 5, 11, 12]), "3-5, 9, 11-12")
        self.assertEqual(coverage.spans([]), "")

    def test_reasons(self):
        rows = [("a.cuh", 1, 1, []), ("b.cuh", 0, 1, [7])]
        self.assertEqual(coverage.unexplained(rows, {"b.cuh": "why"}), [])
        self.assertEqual(len(coverage.unexplained(rows, {})), 1)
        self.assertEqual(len(coverage.unexplained(rows, {"a.cuh": "why", "b.cuh": "why"})), 1)

    @unittest.skipUnless(shutil.which("g++") and shutil.which("gcov"), "needs g++ and gcov")
    def test_counts(self):
        with tempfile.TemporaryDirectory() as name:
            root = pathlib.Path(name)
            (root / "amk").mkdir()
            (root / "amk" / "one.cuh").write_text(HEADER)
            (root / "kernel.cc").write_text(KERNEL)
            where, out = root / "kept", str(root / "kernel.o")
            compile_args = ["-fsanitize=thread", "-fPIC", "-O0", f"-ffile-prefix-map={root}=.", f"-I{root}", "-c", "-o",
                            out, str(root / "kernel.cc")]
            self.assertEqual(coverage.compile_or_link("g++", compile_args, where), 0)
            hooks = root / "hooks.o"  # of the sanitizer, whose library is not linked
            (root / "hooks.cc").write_text("".join(
                f'extern "C" void __tsan_{name}(void*) {{}}\n'
                for name in ("init", "func_entry", "func_exit", "read4", "read8", "write4", "write8")))
            self.assertEqual(coverage.compile_or_link(
                "g++", ["-fPIC", "-c", "-o", str(hooks), str(root / "hooks.cc")], where), 0)
            library = str(root / "kernel.so")
            self.assertEqual(coverage.compile_or_link("g++", ["-shared", "-o", library, out, str(hooks)], where), 0)
            run = f"import ctypes; print(ctypes.CDLL({library!r}).kernel(1))"  # counts are written when it ends
            said = subprocess.run([sys.executable, "-c", run], check=True, capture_output=True, text=True).stdout
            self.assertEqual(said, "1\n")
            lines = coverage.counted(where)
            self.assertEqual(list(lines), ["one.cuh"])
            self.assertEqual({n: count > 0 for n, count in lines["one.cuh"].items()},
                             {1: True, 2: True, 3: True, 4: False})

    @unittest.skipUnless(shutil.which("g++"), "needs g++")
    def test_version(self):
        with contextlib.redirect_stdout(io.StringIO()) as said:
            coverage.compile_or_link("g++", ["--version"], pathlib.Path("here"))
        self.assertIn("--coverage, in here", said.getvalue())


if __name__ == "__main__":
    unittest.main()
