"""Tests of bench/versions.py with tools that only look the part: no GPU, numpy alone."""

import contextlib
import io
import shutil
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import test_workshop
import versions

# It takes as long as the file `us` in its directory says, and 1.5 times that at 8,192.
DEVICE = """\
    #!{python} -IS
    import json, pathlib, sys
    here, args = pathlib.Path(__file__).parent, sys.argv[1:]
    assert args[0] == "turns" and args[args.index("--rounds") + 1] == "1"
    with open(here.parent / "order", "a") as f: f.write(here.name + " ")
    us = float((here / "us").read_text())
    for p in args[args.index("--positions") + 1].split(","):
        t = {{"build": args[-1], "position": int(p), "round": 0}}
        if us: t["report"] = {{"latency_us": {{"median": us * (1.5 if p == "8192" else 1)}}}}
        else: t["error"] = "the kernel and the plain kernels differ"
        print(json.dumps(t))
"""


class Versions(test_workshop.Fake):
    def setUp(self):
        super().setUp()
        self.script("device", DEVICE)
        shutil.copytree(self.tools_dir, self.dir / "former")

    def compare(self, new, former, *flags):
        (self.tools_dir / "us").write_text(str(new))
        (self.dir / "former/us").write_text(str(former))
        (self.dir / "order").unlink(missing_ok=True)
        with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(out):
            code = versions.main([str(self.dir / "former"), "--tools", str(self.tools_dir), "--work",
                                  str(self.dir / "work"), "--model", "llama-3.2-1b", "--target", "h200", *flags])
        order = self.dir / "order"
        return code, out.getvalue(), order.read_text().split() if order.exists() else []

    def test_they_take_turns(self):
        code, out, order = self.compare(99.0, 100.0, "--openings", "3")
        self.assertEqual(code, 0, out)
        self.assertEqual(order, "tools former former former former tools former tools former".split())
        self.assertIn("llama-3.2-1b-bf16-seed1 at 128: 99.0 us, former 100.0 and 100.0: -1.00 %; the twins differ by "
                      "0.00 %\n", out)
        self.assertIn("at 8192: 148.5 us", out)

    def test_a_slower_step_fails(self):
        code, out, _ = self.compare(100.4, 100.0)
        self.assertEqual(code, 1, out)
        self.assertEqual(out.count("+0.40 %"), 2)
        self.assertEqual(out.count("FAIL"), 2)
        self.assertEqual(self.compare(100.2, 100.0)[0], 0)

    def test_there_is_no_time_without_a_check(self):
        code, out, order = self.compare(0, 100.0)
        self.assertEqual((code, order), (1, ["tools"]), out)
        self.assertIn("new at 128: the kernel and the plain kernels differ  FAIL", out)

    def test_bad_usage(self):
        (self.tools_dir / "nvidia-smi").unlink()
        self.script("nvidia-smi", "    #!{python} -IS\n")
        code, out, _ = self.compare(1, 1)
        self.assertEqual(code, 2, out)
        self.assertIn("no GPU was found", out)


if __name__ == "__main__":
    unittest.main()
