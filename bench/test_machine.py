"""Tests of what bench says of the machine that it runs on."""

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import machine
from workshop import gencode


class Machine(unittest.TestCase):
    def test_gpu_facts(self):
        text = "NVIDIA H200, 580.159.04, 143771 MiB\nNVIDIA L4, 1, 2\n"
        self.assertEqual(machine.gpu_facts(text), {"gpu": "NVIDIA H200", "driver": "580.159.04",
                                                   "GPU memory": "143771 MiB"})
        self.assertEqual(machine.gpu_facts(""), {"gpu": "none found"})
        self.assertEqual(machine.slug("NVIDIA GeForce RTX 5090"), "nvidia-geforce-rtx-5090")

    def test_gencode(self):
        self.assertEqual(gencode("sm_90a"), "arch=compute_90a,code=sm_90a")


if __name__ == "__main__":
    unittest.main()
