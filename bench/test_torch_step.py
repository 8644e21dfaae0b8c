"""Tests of the decode step of PyTorch on the CPU, where calls stand in for CUDA graphs. Skipped, and said so, without
torch and transformers: python3 -m unittest discover bench"""

import importlib.util
import io
import json
import os
import sys
import tempfile
import time
import unittest
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))

import machine
import torch_peer

os.chdir(machine.REPO)

MODEL = "testdata/models/zoo/llama-gqa"  # of which only the shape is used
IDS = [3, 500, 7, 7, 41, 12]


class PlainCalls:
    """Calls the function where CudaGraph would replay it, and reads the clock of the host."""

    def __init__(self, step):
        self.run = step
        step()

    def mark(self):
        return time.perf_counter()

    def microseconds(self, start, end):
        return (end - start) * 1e6

    def wait(self):
        pass


class Small(unittest.TestCase):
    """Asks peers with small models."""

    def setUp(self):
        self.dir = Path(self.enterContext(tempfile.TemporaryDirectory()))

    def peer(self, dtype="fp32", model=MODEL, weights=""):
        peer = torch_peer.Peer(model, 1, dtype, weights, device="cpu", graph=PlainCalls)
        self.addCleanup(peer.held.close)
        return peer

    def ask(self, peer, **request):
        out = io.StringIO()
        torch_peer.serve(peer, [json.dumps(request)], out)
        return json.loads(out.getvalue())


@unittest.skipUnless(importlib.util.find_spec("torch") and importlib.util.find_spec("transformers"),
                     "torch or transformers is not here")
class Step(Small):
    def logits(self, attention, compile):
        peer, path = self.peer(), str(self.dir / "forced.npy")
        opened = self.ask(peer, do="open", name="a", attention=attention, compile=compile, length=16)
        self.assertTrue(opened["ok"], opened)
        for _ in range(2):  # the second time over rows that are there
            self.assertTrue(self.ask(peer, do="forced", name="a", ids=IDS, out=path)["ok"])
        return np.load(path), peer

    def test_steps_give_the_logits_of_one_pass(self):
        want = str(self.dir / "fp32.npy")
        self.assertEqual(self.ask(self.peer(), do="reference", ids=IDS, fp32=want, own=str(self.dir / "own.npy")),
                         {"ok": True})
        for attention in ("sdpa", "eager"):
            got, _ = self.logits(attention, compile=False)
            self.assertEqual(got.shape, (len(IDS), 512))
            np.testing.assert_allclose(got, np.load(want), atol=2e-6)

    def test_the_compiled_step_is_the_same(self):
        np.testing.assert_allclose(self.logits("sdpa", compile=True)[0], self.logits("sdpa", compile=False)[0],
                                   atol=2e-6)

    def test_tokens_are_fed_back_and_launches_repeat(self):
        got, peer = self.logits("sdpa", compile=False)
        step = peer.steps["a"]
        answer = self.ask(peer, do="timed", name="a", token=IDS[4], position=4, steps=2, launches=9, warm_up=1)
        self.assertTrue(answer["ok"] and answer["repeats"], answer)
        self.assertTrue(0 < answer["us"]["p10"] <= answer["us"]["median"] <= answer["us"]["p90"])
        self.assertEqual(int(step.position), 6)
        self.ask(peer, do="timed", name="a", token=IDS[4], position=4, steps=1, launches=1, warm_up=0)
        self.assertEqual(int(step.token), int(got[4].argmax()))

    def test_a_step_that_is_not_captured_is_the_same(self):
        _, peer = self.logits("sdpa", compile=False)
        step = peer.steps["a"]
        step.graph.run = lambda: self.fail("nothing is replayed")
        answer = self.ask(peer, do="timed", name="a", token=IDS[4], position=4, steps=2, launches=3, warm_up=1,
                          captured=False)
        self.assertTrue(answer["ok"] and answer["repeats"], answer)
        self.assertEqual(int(step.position), 6)

    def test_failures_are_answers(self):
        peer = self.peer()
        answer = self.ask(peer, do="open", name="a", attention="none such", compile=False, length=16)
        self.assertFalse(answer["ok"])
        self.assertIn("none such", answer["error"])
        self.assertEqual(self.ask(peer, do="timed", name="b", token=0, position=0, steps=1, launches=1,
                                  warm_up=0)["error"], "KeyError: 'b'")


if __name__ == "__main__":
    unittest.main()
