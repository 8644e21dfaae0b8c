"""Tests of what bench says of the machine that it runs on."""

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parent))

import machine
from workshop import gencode

SMI = """\
#!/bin/sh
case "$*" in
-i\\ [1G]*) echo "NVIDIA H100 80GB HBM3, 580, 81559 MiB" ;;
-i\\ 0*) echo "NVIDIA H200, 580, 143771 MiB" ;;
-i*) echo "No devices were found"; exit 6 ;;
*) echo "NVIDIA H200, 580, 143771 MiB"; echo "NVIDIA H100 80GB HBM3, 580, 81559 MiB" ;;
esac
"""


class Machine(unittest.TestCase):
    def setUp(self):
        self.bin = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.enterContext(mock.patch.dict(os.environ, {"PATH": f"{self.bin}:{os.environ['PATH']}"}))
        os.environ.pop("CUDA_VISIBLE_DEVICES", None)  # for the time of the test

    def script(self, name, text):
        (self.bin / name).write_text(text)
        (self.bin / name).chmod(0o755)

    def test_gpu_facts(self):
        text = "NVIDIA H200, 580.159.04, 143771 MiB\nNVIDIA L4, 1, 2\n"
        self.assertEqual(machine.gpu_facts(text), {"gpu": "NVIDIA H200", "driver": "580.159.04",
                                                   "GPU memory": "143771 MiB"})
        self.assertEqual(machine.gpu_facts(""), {"gpu": "none found"})

    def test_a_file_is_called_by_the_target(self):
        self.assertEqual([machine.file_name(gpu) for gpu in ("NVIDIA H200", "NVIDIA H100 80GB HBM3")], ["h200", "h100"])
        self.assertEqual(machine.file_name("NVIDIA GeForce RTX 5090"), "nvidia-geforce-rtx-5090")
        self.assertEqual(machine.file_name("NVIDIA H100 PCIe"), "nvidia-h100-pcie", "it has other sizes")
        known = (machine.REPO / "ir/targets.go").read_text(encoding="utf-8")
        for target in machine.TARGETS.values():
            self.assertIn(f'Target{{Name: "{target}"', known)

    def test_the_gpu_is_the_first_that_cuda_may_use(self):
        self.script("nvidia-smi", SMI)
        for visible, gpu in ((None, "NVIDIA H200"), ("0", "NVIDIA H200"), ("1", "NVIDIA H100 80GB HBM3"),
                             ("1,0", "NVIDIA H100 80GB HBM3"), ("GPU-52f0", "NVIDIA H100 80GB HBM3"),
                             ("7", machine.NO_GPU), ("", machine.NO_GPU)):
            with mock.patch.dict(os.environ, {} if visible is None else {"CUDA_VISIBLE_DEVICES": visible}):
                self.assertEqual(machine.gpu_facts(machine.gpu_query())["gpu"], gpu, visible)

    def test_no_gpu_is_said(self):
        machine.need_gpu({"gpu": "NVIDIA L4"})
        with self.assertRaisesRegex(machine.Missing, "^no GPU was found: nvidia-smi is not there, or fails; want"):
            machine.need_gpu({"gpu": machine.NO_GPU})
        with mock.patch.dict(os.environ, {"CUDA_VISIBLE_DEVICES": "7"}), \
                self.assertRaisesRegex(machine.Missing, "has no GPU '7', which CUDA_VISIBLE_DEVICES names"):
            machine.need_gpu({"gpu": machine.NO_GPU})

    def test_tools_do_not_depend_on_what_was_committed(self):
        self.script("go", f'#!/bin/sh\necho "$@" > {self.bin}/called\n')
        machine.build_tools(self.bin / "tools")
        called = (self.bin / "called").read_text().split()
        self.assertEqual(called[:3], ["build", "-trimpath", "-buildvcs=false"])
        made = [line for line in (machine.REPO / "Makefile").read_text(encoding="utf-8").splitlines()
                if "go build" in line and "dist/results/" in line]
        self.assertTrue(made)
        for line in made:
            self.assertIn(" -trimpath -buildvcs=false ", line)

    def test_without_numpy_scripts_say_so(self):
        bench = machine.REPO / "bench"
        for script in ("results.py", "compare.py"):
            done = subprocess.run([sys.executable, "-I", "-S", bench / script, "--help"], capture_output=True,
                                  text=True, check=False)
            self.assertEqual((done.returncode, done.stderr), (2, f"{script}: error: numpy is needed: python3 -m pip "
                                                              "install numpy\n"))

    def test_gencode(self):
        self.assertEqual(gencode("sm_90a"), "arch=compute_90a,code=sm_90a")


class Alone(unittest.TestCase):
    def setUp(self):
        self.dir = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.one = self.dir / "one"

    def test_a_directory_is_for_one_at_a_time(self):
        with machine.sole_use(self.one):
            with self.assertRaisesRegex(machine.InUse, "one is in use by another invocation; wait.* --work"):
                with machine.sole_use(self.one):
                    pass
        with machine.sole_use(self.one):
            pass


if __name__ == "__main__":
    unittest.main()
