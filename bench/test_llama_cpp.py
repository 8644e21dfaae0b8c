import json
import tempfile
import unittest
from pathlib import Path

import numpy as np

import block_files
import llama_cpp

CONFIG = {"num_hidden_layers": 8, "hidden_size": 256, "vocab_size": 64, "num_attention_heads": 4,
          "num_key_value_heads": 2, "head_dim": 64, "intermediate_size": 512, "max_position_embeddings": 64,
          "rope_theta": 1e4, "rms_norm_eps": 1e-5}
EXPERTS = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 256}


class BlockFiles(unittest.TestCase):
    def test_means_are_zero(self):
        """Elements of blocks add up to little of what their sizes do."""
        rng = np.random.default_rng(3)
        elements = {"Q4_0": lambda b: (b[:, 2:] & 15).astype(int) - 8, "Q8_0": lambda b: b[:, 2:].view(np.int8)}
        for name, read in elements.items():
            n = 32 * 4096
            b = block_files.data(rng, "blk.0.attn_q.weight", name, n)
            values = b[:, :2].copy().view(np.float16).astype(float) * read(b)
            self.assertLess(abs(values.mean()), 0.02 * values.std())
        b = block_files.data(rng, "blk.0.attn_q.weight", "Q4_K", 256 * 64)
        for j in range(4):  # scales and minima of 6 bits are the same
            self.assertTrue((b[:, 4 + j] == b[:, 8 + j]).all() and (b[:, 12 + j] & 15 == b[:, 12 + j] >> 4).all())

    def test_files(self):
        """A file is as long as its tensors, which are those of its family, are said to be."""
        for family, kind, more in (("llama", "Q4_K_M", {}), ("qwen3_moe", "Q8_0", EXPERTS)):
            c = CONFIG | more | {"model_type": family}
            with tempfile.TemporaryDirectory() as folder:
                Path(folder, "config.json").write_text(json.dumps(c), encoding="utf-8")
                block_files.write(folder, Path(folder, "m.gguf"), kind)
                size = sum(-(-int(np.prod(shape)) // block_files.TYPES[t][1] * block_files.TYPES[t][2] // 32) * 32
                           for _, t, shape in block_files.tensors(c, kind))
                text = Path(folder, "m.gguf").read_bytes()
                self.assertEqual(text[:4], b"GGUF")
                self.assertLess(abs(len(text) - size), 1 << 16)
                self.assertIn(b"blk.7.ffn_down_exps.weight" if more else b"blk.7.ffn_down.weight", text)


class Rows(unittest.TestCase):
    def test_said(self):
        row = {"file": "m.gguf", "llama_median_us": 3000.0, "amkc_median_us": 1200.0, "share_of_ceiling": 0.87,
               "times": 2.5, "findings": ["check: position 3"]}
        said = llama_cpp.said(row)
        self.assertIn("2.50 x", said)
        self.assertTrue(said.endswith("\n    check: position 3"))


if __name__ == "__main__":
    unittest.main()
