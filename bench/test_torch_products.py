"""Tests of the products of a step alone, on the CPU, where calls stand in for CUDA graphs. Skipped, and said so,
without torch and transformers: python3 -m unittest discover bench"""

import importlib.util
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import comparing
import test_torch_step
from reference import invented

MISSING = [name for name in ("torch", "transformers") if importlib.util.find_spec(name) is None]


@unittest.skipIf(MISSING, f"needs {', '.join(MISSING)}")
class Products(test_torch_step.Small):
    def model(self, dtype="bf16"):
        return self.enterContext(invented(test_torch_step.MODEL, 1, dtype, dtype, "cpu")).model

    def products(self, model, form):
        import torch_products

        return torch_products.Products(model, form, test_torch_step.PlainCalls)

    def test_they_are_those_of_a_step_in_its_order(self):
        import torch
        import torch_products

        self.assertEqual(tuple(torch_products.FORMS), comparing.PRODUCTS)
        for dtype in ("bf16", "fp32"):
            model = self.model(dtype)
            c, layer = model.config, model.model.layers[-1]
            for form, (together, _) in torch_products.FORMS.items():
                p = self.products(model, form)
                self.assertLess(p.check(), 2**-7 if dtype == "bf16" else 1e-5)
                self.assertEqual(len(p.matrices), (4 if together else 7) * c.num_hidden_layers + 1)
                own = [layer.self_attn.q_proj, layer.self_attn.k_proj, layer.self_attn.v_proj, layer.self_attn.o_proj,
                       layer.mlp.gate_proj, layer.mlp.up_proj, layer.mlp.down_proj]
                parts = ((own[:3], own[3:4], own[4:6], own[6:]) if together else [[m] for m in own])
                for matrix, vector, result, part in zip(p.matrices[-1 - len(parts):], p.vectors[-1 - len(parts):],
                                                        p.results[-1 - len(parts):], parts):
                    self.assertTrue(torch.equal(matrix, torch.cat([m.weight for m in part])))
                    apart = torch.cat([m(vector[None])[0] for m in part])
                    self.assertTrue(torch.allclose(result.float(), apart.float(), rtol=1e-2, atol=1e-2))
                self.assertTrue(torch.equal(p.matrices[-1], model.lm_head.weight))
                self.assertEqual(p.weight_bytes, sum(m.weight.numel() * m.weight.element_size()
                                                     for m in model.modules() if isinstance(m, torch.nn.Linear)))

    def test_a_wrong_product_and_one_that_is_left_out_are_found(self):
        import torch
        import torch_products

        p = self.products(self.model(), "mv")
        self.assertLess(p.check(), torch_products.MOST)
        other = [*p.matrices]
        other[5] = p.matrices[4]  # gate in the place of up
        right, p.graph.run = p.graph.run, lambda: [torch.mv(w, x, out=y)
                                                   for w, x, y in zip(other, p.vectors, p.results)]
        with self.assertRaisesRegex(torch_products.Wrong, "^product 5 of "):
            p.check()
        p.graph.run = lambda: [torch.mv(w, x, out=y) for w, x, y in list(zip(p.matrices, p.vectors, p.results))[:-1]]
        with self.assertRaisesRegex(torch_products.Wrong, "is off by nan"):
            p.check()
        p.graph.run = right
        self.assertLess(p.check(), torch_products.MOST)

    def test_a_peer_times_them(self):
        peer = self.peer("bf16")
        got = self.ask(peer, do="products", name="x", form="together-mm")
        self.assertTrue(got["ok"], got)
        self.assertEqual(got["products"] % 4, 1)
        self.assertLess(got["worst"], 2**-6)
        timed = self.ask(peer, do="timed", name="x", token=1, position=2, steps=2, launches=3, warm_up=1)
        self.assertTrue(timed["ok"], timed)
        self.assertTrue(timed["repeats"])
        self.assertGreater(timed["us"]["median"], 0)


if __name__ == "__main__":
    unittest.main()
