"""Tests of PyTorch's quantised matrices on the CPU. Skipped, and said so, without torch and transformers: python3 -m
unittest discover bench"""

import importlib.util
import json
import sys
import unittest
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))

import test_torch_step

HERE = bool(importlib.util.find_spec("torch") and importlib.util.find_spec("transformers"))
if HERE:
    import torch

    import torch_quantised

# The int4 kernel takes columns by 128.
SMALL = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu", "hidden_size": 128,
         "intermediate_size": 256, "max_position_embeddings": 64, "num_attention_heads": 4, "num_hidden_layers": 2,
         "num_key_value_heads": 2, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "vocab_size": 512}
MATRICES = 2 * (128 * 128 * 2 + 128 * 64 * 2 + 128 * 256 * 3) + 512 * 128
NORMS = 5 * 128


@unittest.skipUnless(HERE, "torch or transformers is not here")
class Matrices(unittest.TestCase):
    def setUp(self):
        self.weight = torch.randn(32, 256, generator=torch.manual_seed(1)).mul(0.02).bfloat16()

    def test_int8_takes_the_largest_of_a_row_to_127(self):
        q, scale = torch_quantised.to_int8(torch.tensor([[0.5, -2.0, 1.0], [0, 0, 0], [254, 3, -1]]).bfloat16())
        self.assertEqual(q.tolist(), [[32, -127, 64], [0, 0, 0], [127, 2, 0]])
        self.assertEqual((scale[2].item(), q.dtype), (2.0, torch.int8))

    def test_int4_spans_the_range_of_a_group(self):
        weight = torch.arange(16.0).repeat(8, 16)
        weight[:, 128:] *= -2
        q, scale, zero = torch_quantised.to_int4(weight.bfloat16(), 128)
        self.assertEqual(q[0, :16].tolist(), list(range(16)))
        self.assertEqual(q[0, 128:144].tolist(), list(range(15, -1, -1)))
        self.assertEqual((scale[0].tolist(), zero[0].tolist()), ([1, 2], [8, -14]))
        values = torch_quantised.int4_values(weight.bfloat16(), 128)
        self.assertTrue(torch.equal(values, weight))

    def test_errors_are_at_most_half_a_step(self):
        w = self.weight.float()
        for spec, steps in (("int8", w.abs().amax(1, keepdim=True) / 127), ("int4:g64", self.ranges(64) / 15)):
            values = torch_quantised.form(spec, "x")[1](self.weight)
            # bf16 rounds scales, zeros and values of int4: by 1/256 of the largest weight at most.
            slack = w.abs().max() / 256
            self.assertTrue(((values - w).abs() <= 0.5 * steps + slack).all(), spec)
            self.assertGreater((values - w).abs().max(), 0)

    def ranges(self, group):
        groups = self.weight.float().reshape(32, -1, group)
        return (groups.amax(2) - groups.amin(2)).repeat_interleave(group, 1)

    def test_products_are_those_of_the_values(self):
        x = torch.randn(1, 3, 256, generator=torch.manual_seed(2)).bfloat16()
        bias = torch.ones(32).bfloat16()
        for spec in ("int8", "int4:g32", "int4:g128"):
            make, values = torch_quantised.form(spec, "x")
            want = x.float() @ values(self.weight).T + 1
            np.testing.assert_allclose(make(self.weight, bias)(x).float(), want, atol=0.02, err_msg=spec)

    def test_the_first_column_is_in_the_upper_half_of_a_byte(self):
        q = torch.tensor([[1, 2, 15, 0]], dtype=torch.uint8)
        self.assertEqual(torch_quantised.two_a_byte(q).tolist(), [[0x12, 0xF0]])

    def test_zeros_stay_zeros(self):
        for spec in ("int8", "int4:g128"):
            make, values = torch_quantised.form(spec, "x")
            none = torch.zeros(16, 128).bfloat16()
            self.assertFalse(values(none).any())
            self.assertFalse(make(none, None)(torch.ones(1, 128).bfloat16()).any())

    def test_what_is_no_form(self):
        for spec in ("", "int2", "int8:g128", "int4", "int4:g48", "int4:g128:asym"):
            with self.assertRaisesRegex(ValueError, "is needed"):
                torch_quantised.form(spec, "x")
        for shape in ((24, 192), (12, 128)):
            with self.assertRaisesRegex(ValueError, "rows by 8"):
                torch_quantised.to_int4(torch.zeros(shape), 64)


@unittest.skipUnless(HERE, "torch or transformers is not here")
class Models(test_torch_step.Small):
    def setUp(self):
        super().setUp()
        self.model = self.dir / "small"
        self.model.mkdir()

    def steps(self, spec, compile, **config):
        """The logits of steps with quantised matrices, of one pass with their values in fp32 and bf16, and the answer
        to opening the step."""
        (self.model / "config.json").write_text(json.dumps(SMALL | config))
        paths = {name: str(self.dir / f"{name}.npy") for name in ("fp32", "own", "out")}
        peer = self.asked = self.peer("bf16", str(self.model), spec)
        self.assertEqual(self.ask(peer, do="reference", ids=test_torch_step.IDS, fp32=paths["fp32"], own=paths["own"]),
                         {"ok": True})
        opened = self.ask(peer, do="open", name="a", attention="sdpa", compile=compile, length=16)
        self.assertTrue(opened["ok"], opened)
        self.assertTrue(self.ask(peer, do="forced", name="a", ids=test_torch_step.IDS, out=paths["out"])["ok"])
        return np.load(paths["out"]), np.load(paths["fp32"]), np.load(paths["own"]), opened

    def check(self, spec, bytes_of_matrices, biases=0, compile=False, **config):
        got, ref, own, opened = self.steps(spec, compile, **config)
        rms = lambda x: np.sqrt(np.mean(np.square(x)))
        self.assertLess(rms(got - ref), 1.5 * rms(own - ref), spec)
        self.assertEqual((opened["weights"], opened["weight_bytes"]),
                         (MATRICES + NORMS + biases, bytes_of_matrices + 2 * NORMS))
        return ref

    def test_steps_compute_with_the_values(self):
        rows = 2 * (128 * 2 + 64 * 2 + 256 * 2 + 128)
        exact = self.check("", 2 * MATRICES)
        int8 = self.check("int8", MATRICES + 2 * (rows + 512))
        layers = MATRICES - 512 * 128
        int4 = self.check("int4:g128", layers // 2 + layers // 128 * 4 + 512 * 128 + 512 * 2)
        off = [np.abs(ref - exact).max() for ref in (int8, int4)]
        self.assertTrue(0 < off[0] < off[1] / 4, "the reference has the values of the quantised matrices")

    def test_compiled_steps_do_too(self):
        rows = 2 * (128 * 2 + 64 * 2 + 256 * 2 + 128)
        self.check("int8", MATRICES + 2 * (rows + 512), compile=True)

    def test_matrices_of_one_vector_are_one(self):
        self.steps("int8", compile=False)
        model = self.asked.weights
        kinds = [type(m).__name__ for m in model.model.layers[0].modules()]
        self.assertEqual([kinds.count(k) for k in ("First", "Next", "Int8", "Linear")], [2, 3, 4, 0])
        attention = model.model.layers[0].self_attn
        self.assertEqual(attention.q_proj.product.q.shape, (256, 128))
        self.assertEqual(attention.q_proj.kept, [], "all were asked for")

    def test_biases_go_along(self):
        rows = 2 * (128 * 2 + 64 * 2 + 256 * 2 + 128)
        biases = 2 * (128 * 2 + 64 * 2)
        self.check("int8", MATRICES + 2 * (rows + 512) + 2 * biases, biases, attention_bias=True)

    def test_a_head_that_is_the_embedding_becomes_a_matrix_of_its_own(self):
        self.check("int8", MATRICES + 2 * (2 * (128 * 2 + 64 * 2 + 256 * 2 + 128) + 512), tie_word_embeddings=True)

    def test_a_form_that_is_none_is_an_answer(self):
        (self.model / "config.json").write_text(json.dumps(SMALL))
        answer = self.ask(self.peer("bf16", str(self.model), "int2"), do="open", name="a", attention="sdpa",
                          compile=False, length=16)
        self.assertIn("weights 'int2'", answer["error"])


if __name__ == "__main__":
    unittest.main()
