"""The matrix-vector products of a decode step and nothing else, as PyTorch has cuBLAS multiply them, in one CUDA graph:
what is left of a step whose norms, attention and all other kernels cost nothing.

The matrices are those of a model of transformers, in the order of a step: of each layer q, k, v, o, gate, up and down,
then the head. A form says how they are multiplied: together, q, k and v are one matrix, and so are gate and up; and by
torch.mm or by torch.mv. Every product has a vector of its own length, not what the one before has left, and waits for
that one, as kernels of a graph that follow one another do. Needs torch. Must not know amkc.
"""

import torch
from torch_quantised import TOGETHER, matrices
from torch_step import CudaGraph, time_launches

FORMS = {"mm": (False, torch.mm), "mv": (False, torch.mv), "together-mm": (True, torch.mm),
         "together-mv": (True, torch.mv)}
SEED = 1  # of the vectors
# Of the largest element of a product in fp32, an element may be so far from it: a product in 16 bits is rounded to 2^-9
# of it, and its parts may be once more.
MOST = 2**-6


class Wrong(Exception):
    """A product is not what a plain one is."""


@torch.no_grad()
def in_order(model, together):
    """The matrices of a step [n, k] of a model, in the order in which they are multiplied."""
    out = []
    for name in matrices(model):
        owner, _, last = name.rpartition(".")
        names = next((names for names in TOGETHER if last in names), (last,)) if together else (last,)
        if last == names[0]:
            own = [model.get_submodule(f"{owner}.{n}".lstrip(".")).weight.detach() for n in names]
            out.append(own[0] if len(own) == 1 else torch.cat(own))
    return out


class Products:
    """The products of a step of a model in a form. graph is CudaGraph, or what stands in for it where there is no
    GPU."""

    @torch.no_grad()
    def __init__(self, model, form, graph=CudaGraph):
        together, self.multiply = FORMS[form]
        self.matrices = in_order(model, together)
        w = self.matrices[0]
        of = torch.Generator(device=w.device).manual_seed(SEED)
        vectors = {k: torch.randn(k, generator=of, dtype=torch.float32, device=w.device).to(w.dtype)
                   for k in sorted({m.shape[1] for m in self.matrices})}
        self.vectors = [vectors[m.shape[1]] for m in self.matrices]
        self.results = [torch.zeros(m.shape[0], dtype=m.dtype, device=m.device) for m in self.matrices]
        self.graph = graph(self.step)

    @property
    def weight_bytes(self):
        return sum(m.numel() * m.element_size() for m in self.matrices)

    @torch.no_grad()
    def step(self):
        for w, x, y in zip(self.matrices, self.vectors, self.results):
            if self.multiply is torch.mv:
                torch.mv(w, x, out=y)
            else:
                torch.mm(x[None], w.T, out=y[None])

    @torch.no_grad()
    def check(self):
        """Runs the graph, and holds each product to a plain one in fp32. Returns how far an element is off at most,
        over the largest of its product; Wrong, if that is too far, or an element was not computed."""
        for y in self.results:
            y.fill_(float("nan"))
        self.graph.run()
        self.graph.wait()
        worst = 0.0
        for i, (w, x, y) in enumerate(zip(self.matrices, self.vectors, self.results)):
            right = w.float() @ x.float()
            off = float((y.float() - right).abs().max() / right.abs().max())
            if not off <= MOST:  # of NaN neither is so
                raise Wrong(f"product {i} of {len(self.matrices)}, of {w.shape[0]} x {w.shape[1]}, is off by "
                            f"{off:.3g} of its largest element; at most {MOST:.3g} is right")
            worst = max(worst, off)
        return worst

    @torch.no_grad()
    def timed(self, token, position, steps, launches, warm_up, captured=True):
        """Quantiles of the microseconds per step over launches of steps each, and whether results repeat. They depend
        on no token and no position."""
        self.graph.run()
        self.graph.wait()
        last = self.results[-1].clone()
        return time_launches(self.graph, lambda: None, self.graph.run if captured else self.step,
                             lambda: torch.equal(self.results[-1], last), steps, launches, warm_up)
