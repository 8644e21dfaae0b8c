"""Tests of in_memory.sh: which runs have the same directory, so that go test reuses results."""

import os
import pathlib
import subprocess
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().with_name("in_memory.sh")


class InMemoryTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.repo, self.below = pathlib.Path(folder.name, "repo"), pathlib.Path(folder.name, "below")
        for path in (self.repo, self.below):
            path.mkdir()
        subprocess.run(["git", "init", "-q"], cwd=self.repo, check=True)
        (self.repo / "a.go").write_text("package a\n")
        (self.repo / "a.py").write_text("a = 1\n")

    def run_script(self, *command, code=0, **env):
        done = subprocess.run([SCRIPT, *command], cwd=self.repo, stdout=subprocess.PIPE, text=True,
                              env={**os.environ, "TMPDIR": str(self.below), **env})
        self.assertEqual(done.returncode, code)
        self.assertEqual(list(self.below.iterdir()), [], "the directory is left")
        return done.stdout.strip()

    def where(self, **env):
        return self.run_script("sh", "-c", "touch $TMPDIR/x && echo $TMPDIR", **env)

    def test_same_inputs(self):
        here = self.where()
        self.assertEqual(pathlib.Path(here).parent, self.below)
        self.assertEqual(self.where(), here)
        (self.repo / "a.go").write_text("package b\n")  # go test sees these itself
        self.assertEqual(self.where(), here)
        self.assertEqual(self.where(UNRELATED="1"), here)

    def test_other_inputs(self):
        seen = [self.where()]

        def is_new(**env):
            seen.append(self.where(**env))
            self.assertEqual(len(set(seen)), len(seen), seen)

        (self.repo / "a.py").write_text("a = 2\n")
        is_new()
        (self.repo / "a.py").rename(self.repo / "b.py")
        is_new()
        is_new(NVCC_APPEND_FLAGS="-O0")
        is_new(PYTHONPATH="elsewhere")
        is_new(CXX="false")
        (self.repo / ".python" / "numpy-1.dist-info").mkdir(parents=True)
        is_new()
        (self.repo / ".python" / "numpy-1.dist-info").rename(self.repo / ".python" / "numpy-2.dist-info")
        is_new()

    def test_two_at_a_time(self):
        here = self.where()
        both = f"TMPDIR={self.below} {SCRIPT} sh -c 'echo $TMPDIR'; echo $TMPDIR"
        inside = subprocess.run([SCRIPT, "sh", "-c", both],
                                cwd=self.repo, stdout=subprocess.PIPE, text=True, check=True,
                                env={**os.environ, "TMPDIR": str(self.below)}).stdout.split()
        self.assertEqual(inside[1], here)
        self.assertNotEqual(inside[0], here)
        self.assertEqual(list(self.below.iterdir()), [])

    def test_killed(self):
        here = pathlib.Path(self.where())
        here.mkdir()
        ended = subprocess.Popen(["true"])
        ended.wait()
        (here / "pid").write_text(str(ended.pid))
        (here / "left").touch()
        self.assertEqual(self.run_script("sh", "-c", "ls $TMPDIR"), "pid")

    def test_status(self):
        self.run_script("sh", "-c", "exit 3", code=3)


if __name__ == "__main__":
    unittest.main()
