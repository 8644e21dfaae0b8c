"""Models of transformers with quantised matrices, in the forms that PyTorch is fast with.

    int8       a row is bytes and a scale. They are widened where they are multiplied, and the scale multiplies the sum:
               torch.compile makes one kernel of that, which reads bytes
    int4:gN    a group of N columns (32, 64, 128 or 256) is integers of 4 bits, a scale and a zero, and PyTorch's own
               kernel multiplies them; the head is in int8

Integers are rounded to nearest within the range of a row or group. Scales and zeros have the dtype of the model. q, k
and v are one matrix, and so are gate and up: fewer and larger products are faster. Needs torch; must not know amkc.
"""

import functools

import torch
import torch.nn.functional as F

HEAD = "lm_head"
TOGETHER = (("q_proj", "k_proj", "v_proj"), ("gate_proj", "up_proj"))  # they multiply one vector, in this order
SIDE_BY_SIDE = 8  # blocks of 16 columns that the int4 kernel loads at once, at most: 16 bytes of a thread
aten = torch.ops.aten


def to_int8(weight):
    """Integers from -127 to 127 [n, k] and scales [n] of a matrix, whose elements are about q·scale."""
    scale = positive(weight.float().abs().amax(1) / 127, weight.dtype)
    return (weight.float() / scale.float()[:, None]).round().clamp(-127, 127).to(torch.int8), scale


def to_int4(weight, group):
    """Integers from 0 to 15 [n, k], and scales and zeros [n, k / group], of a matrix whose elements are about
    (q - 8)·scale + zero."""
    n, k = weight.shape
    if n % 8 or k % (16 * SIDE_BY_SIDE) or k % group:
        raise ValueError(f"a matrix of {n} x {k}: for int4, PyTorch needs rows by 8, and columns by "
                         f"{16 * SIDE_BY_SIDE} and by groups of {group}")
    groups = weight.float().reshape(n, k // group, group)
    low, high = groups.amin(2), groups.amax(2)
    scale = positive((high - low) / 15, weight.dtype)
    zero = (low + 8 * scale.float()).to(weight.dtype)
    q = ((groups - zero.float()[..., None]) / scale.float()[..., None] + 8).round().clamp(0, 15)
    return q.reshape(n, k).to(torch.uint8), scale, zero


def positive(scale, dtype):
    return scale.clamp(min=torch.finfo(dtype).tiny).to(dtype)


def int8_values(weight):
    """What Int8 multiplies with, fp32."""
    q, scale = to_int8(weight)
    return q.float() * scale.float()[:, None]


def int4_values(weight, group):
    """What Int4 multiplies with, fp32: the kernel rounds it to the dtype."""
    q, scale, zero = (t.float() for t in to_int4(weight, group))
    groups = (q.reshape(*scale.shape, group) - 8) * scale[..., None] + zero[..., None]
    return groups.reshape(weight.shape).to(weight.dtype).float()


class Int8(torch.nn.Module):
    def __init__(self, weight, bias):
        super().__init__()
        q, scale = to_int8(weight)
        self.register_buffer("q", q)
        self.register_buffer("scale", scale)
        self.register_buffer("bias", bias)

    def forward(self, x):
        y = F.linear(x, self.q.to(x.dtype)) * self.scale
        return y if self.bias is None else y + self.bias


class Int4(torch.nn.Module):
    """In bf16. The operators for the CPU order elements in another way, and multiply the same numbers."""

    def __init__(self, weight, bias, group):
        super().__init__()
        q, scale, zero = to_int4(weight, group)
        self.group, self.cpu = group, weight.device.type == "cpu"
        self.register_buffer("packed", aten._convert_weight_to_int4pack_for_cpu(q.int(), SIDE_BY_SIDE) if self.cpu else
                             aten._convert_weight_to_int4pack(two_a_byte(q), SIDE_BY_SIDE))
        self.register_buffer("scales", torch.stack([scale.T, zero.T], 2).contiguous())  # [k / group, n, 2]
        self.register_buffer("bias", bias)

    def forward(self, x):
        multiply = aten._weight_int4pack_mm_for_cpu if self.cpu else aten._weight_int4pack_mm
        y = multiply(x.reshape(-1, x.shape[-1]), self.packed, self.group, self.scales).reshape(*x.shape[:-1], -1)
        return y if self.bias is None else y + self.bias


class First(torch.nn.Module):
    """The first of several matrices that multiply one vector. It multiplies with all, and keeps the others' rows until
    they are asked for."""

    def __init__(self, product, rows):
        super().__init__()
        self.product, self.rows, self.kept = product, rows, []

    def forward(self, x):
        first, *others = self.product(x).split(self.rows, -1)
        self.kept.extend(others)
        return first


class Next(torch.nn.Module):
    """The next one of these, which must be called in their order."""

    def __init__(self, first):
        super().__init__()
        self.kept = first.kept

    def forward(self, x):
        return self.kept.pop(0)


def two_a_byte(q):
    """Columns 2i and 2i + 1 in byte i, the first in the upper half [n, k / 2]: what the packing on the GPU takes."""
    return (q[:, ::2] << 4 | q[:, 1::2]).contiguous()


def form(spec, name):
    """The module that a matrix of that name becomes, of its weight and bias, and the values of a weight in it."""
    kind, _, group = spec.partition(":g")
    if spec == "int8" or kind == "int4" and name == HEAD:
        return Int8, int8_values
    if kind == "int4" and group in ("32", "64", "128", "256"):
        return functools.partial(Int4, group=int(group)), functools.partial(int4_values, group=int(group))
    raise ValueError(f"weights {spec!r}: int8, or int4:gN with N 32, 64, 128 or 256, is needed")


def matrices(model):
    """The names of the linear layers of a model."""
    return [name for name, m in model.named_modules() if isinstance(m, torch.nn.Linear)]


@torch.no_grad()
def quantise(model, spec):
    """Replaces the linear layers of a model by quantised ones, a few at a time. An embedding stays as it is, and so
    does one that is the head as well, which becomes a matrix of its own."""
    for name in matrices(model):
        parent, _, last = name.rpartition(".")
        owner, make = model.get_submodule(parent), form(spec, name)[0]
        names = next((names for names in TOGETHER if last in names), (last,))
        if last != names[0]:
            continue  # it is part of the first
        own = [getattr(owner, n) for n in names]
        bias = None if own[0].bias is None else torch.cat([m.bias.detach() for m in own])
        replaced = make(torch.cat([m.weight.detach() for m in own]), bias)
        if len(own) > 1:
            replaced = First(replaced, [m.out_features for m in own])
        setattr(owner, last, replaced)
        for n in names[1:]:
            setattr(owner, n, Next(replaced))


@torch.no_grad()
def dequantise(model, spec, dtype):
    """Gives the linear layers of a model the values that they have when a model in dtype is quantised. Its weights must
    be exact in dtype."""
    for name in matrices(model):
        linear, values = model.get_submodule(name), form(spec, name)[1]
        linear.weight = torch.nn.Parameter(values(linear.weight.to(dtype)).to(linear.weight.dtype),
                                           requires_grad=False)


def streamed(model):
    """How many bytes a step reads of the weights of a model, quantised or not: all but the embedding, of which it reads
    a row, unless that is the head as well."""
    embedding = model.get_input_embeddings().weight
    head = getattr(model.get_output_embeddings(), "weight", None)
    quantised = [b for m in model.modules() if isinstance(m, (Int8, Int4)) for b in m.buffers()]
    read = [p for p in model.parameters() if p is not embedding or p is head] + quantised
    return sum(t.numel() * t.element_size() for t in read)
