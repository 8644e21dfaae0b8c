#!/usr/bin/env python3
"""Random weights, the twin of importers/checkpoint/random.go: the same (seed, name, shape, dtype) gives the same
values.

    tensor(seed, name, shape, dtype)                        numpy float32 array of values that dtype can hold
    torch_tensor(seed, name, shape, dtype, device="cuda")   torch tensor of that dtype, computed on the device
    python3 bench/random_weights.py                         checks numpy, and torch where it is installed

dtype is a safetensors name: "F32", "F16" or "BF16". Element i of a tensor has the 64 bits

    mix(key + (i + 1) * GOLDEN), key = mix(seed) ^ fnv1a(name)         all modulo 2^64

whose top 24 give u in [-1, 1). The value is u * MATRIX_SCALE, or 1 + u * NORM_SCALE for a vector whose name ends in
"weight" (without the 1 for a norm that multiplies by 1 + w: centre=0), in float32, rounded to dtype. Element indices
are those of the flattened, row-major tensor.
"""

import argparse
import math
import sys

import numpy as np

MASK = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15
MIX = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1))
MATRIX_SCALE = 0.034641016  # 0.02 * sqrt(3), read as float32: a standard deviation of 0.02
NORM_SCALE = 0.1
DTYPES = ("F32", "F16", "BF16")

# Seed, name, shape, dtype, index of the element, bits of its value as float32. importers/checkpoint/random_test.go has
# the same list. The indices beyond 2^32 are of tensors that nobody would build whole.
VECTORS = (
    (0, "model.layers.0.self_attn.q_proj.weight", (2048, 2048), "F32", 0, 0xbbb73470),
    (0, "model.layers.0.self_attn.q_proj.weight", (2048, 2048), "F32", 1, 0xbcf5c94b),
    (0, "model.layers.0.self_attn.q_proj.weight", (2048, 2048), "BF16", 0, 0xbbb70000),
    (0, "model.layers.0.self_attn.q_proj.weight", (2048, 2048), "F16", 0, 0xbbb74000),
    (1, "model.layers.0.self_attn.q_proj.weight", (2048, 2048), "F32", 0, 0x3cb87b23),
    (1, "model.layers.0.self_attn.q_proj.weight", (2048, 2048), "BF16", 4194303, 0x3c4f0000),
    (0, "model.norm.weight", (2048,), "F32", 0, 0x3f68e490),
    (0, "model.norm.weight", (2048,), "F32", 1, 0x3f6d74d6),
    (0, "model.norm.weight", (2048,), "F32", 53, 0x3f8a2bbc),  # a fused multiply-add would give ...bbd
    (0, "model.norm.weight", (2048,), "BF16", 1, 0x3f6d0000),
    (0, "model.norm.weight", (2048,), "F16", 2047, 0x3f834000),
    (0, "model.layers.0.self_attn.q_proj.bias", (2048,), "F32", 0, 0x3c4e2f0e),
    (42, "model.embed_tokens.weight", (128256, 2048), "BF16", 262668287, 0x3cec0000),
    (42, "model.embed_tokens.weight", (1048576, 8192), "F32", 5000000000, 0x3cda602d),
    (42, "model.embed_tokens.weight", (1048576, 8192), "BF16", 8589934591, 0xbbdd0000),
    (0xffffffffffffffff, "x", (4, 4), "F32", 15, 0xbceac166),
    (0x123456789abcdef, "größe.weight", (7,), "F32", 6, 0x3f8c105e),
    (3, "scalar", (), "F32", 0, 0x3bfa5c4a),
)


def mix(x):
    """The finaliser of SplitMix64 on a Python integer."""
    for shift, factor in MIX:
        x = ((x ^ (x >> shift)) * factor) & MASK
    return x


def fnv1a(name):
    """The 64-bit FNV-1a hash of the name's UTF-8 bytes."""
    h = 0xCBF29CE484222325
    for byte in name.encode():
        h = ((h ^ byte) * 0x100000001B3) & MASK
    return h


def tensor_key(seed, name):
    return mix(seed & MASK) ^ fnv1a(name)


def is_norm(name, shape):
    return len(shape) == 1 and name.endswith("weight")


def elements(seed, name, shape, dtype, first, count, centre=1):
    """Elements [first, first + count) of a tensor, as a numpy float32 vector."""
    if dtype not in DTYPES:
        raise ValueError(f"dtype {dtype!r}: one of {', '.join(DTYPES)} is needed")
    index = np.arange(first + 1, first + 1 + count, dtype=np.uint64)
    x = np.uint64(tensor_key(seed, name)) + index * np.uint64(GOLDEN)  # arrays of unsigned integers wrap
    for shift, factor in MIX:
        x = (x ^ (x >> np.uint64(shift))) * np.uint64(factor)
    u = ((x >> np.uint64(40)).astype(np.int32) - (1 << 23)).astype(np.float32) * np.float32(2.0**-23)
    if is_norm(name, shape):
        value = np.float32(centre) + u * np.float32(NORM_SCALE)
    else:
        value = u * np.float32(MATRIX_SCALE)
    return round_to(value, dtype)


def round_to(value, dtype):
    """Finite float32 values rounded to dtype, to nearest and ties to even, and back."""
    if dtype == "F16":
        return value.astype(np.float16).astype(np.float32)
    if dtype == "BF16":
        bits = value.view(np.uint32)
        bits = bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))
        return (bits & np.uint32(0xFFFF0000)).view(np.float32)
    return value


def tensor(seed, name, shape, dtype):
    """The whole tensor as a numpy float32 array."""
    return elements(seed, name, shape, dtype, 0, math.prod(shape)).reshape(shape)


def torch_tensor(seed, name, shape, dtype, device="cuda", block=1 << 26, centre=1):
    """The whole tensor as a torch tensor, computed on the device with at most block elements in flight."""
    import torch

    out = torch.empty(math.prod(shape), dtype=torch_dtype(dtype), device=device)
    for first in range(0, out.numel(), block):
        count = min(block, out.numel() - first)
        out[first : first + count] = torch_elements(seed, name, shape, first, count, device,
                                                      centre)  # rounds to nearest even
    return out.reshape(shape)


def torch_dtype(dtype):
    import torch

    return {"F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}[dtype]


def torch_elements(seed, name, shape, first, count, device, centre=1):
    """Elements [first, first + count) in float32, not yet rounded. torch computes in int64, which wraps like uint64 but
    shifts in copies of the sign; these are masked off."""
    import torch

    x = torch.arange(first + 1, first + 1 + count, dtype=torch.int64, device=device)
    x.mul_(signed(GOLDEN)).add_(signed(tensor_key(seed, name)))
    for shift, factor in MIX:
        x.bitwise_xor_((x >> shift).bitwise_and_((1 << (64 - shift)) - 1)).mul_(signed(factor))
    u = (x >> 40).bitwise_and_((1 << 24) - 1).sub_(1 << 23).to(torch.float32).mul_(2.0**-23)
    if is_norm(name, shape):
        return u.mul_(NORM_SCALE).add_(float(centre))  # two operations, so that the product is rounded as well
    return u.mul_(MATRIX_SCALE)


def signed(x):
    """The int64 with the bits of the uint64 x."""
    return x - (1 << 64) if x >> 63 else x


def bits_of(value):
    return int(np.float32(value).view(np.uint32))


def self_test():
    """Compares with VECTORS, and torch with numpy. Returns the number of differences, each printed."""
    wrong = 0

    def check(engine, vector, got):
        nonlocal wrong
        if got != vector[-1]:
            wrong += 1
            print(f"{engine}: {vector[:-1]}: {got:#010x}, want {vector[-1]:#010x}")

    for vector in VECTORS:
        seed, name, shape, dtype, index, _ = vector
        check("numpy", vector, bits_of(elements(seed, name, shape, dtype, index, 1)[0]))
    assert tensor(1, "a.weight", (3, 5), "BF16").shape == (3, 5)
    engines = ["numpy"]

    try:
        import torch
    except ImportError:
        torch = None
    if torch:
        devices = ["cpu"] + (["cuda"] if torch.cuda.is_available() else [])
        for device in devices:
            engines.append("torch on " + device)
            for vector in VECTORS:
                seed, name, shape, dtype, index, _ = vector
                value = torch_elements(seed, name, shape, index, 1, device).to(torch_dtype(dtype)).float()
                check(engines[-1], vector, bits_of(value.cpu().numpy()[0]))
            for dtype in DTYPES:
                for name, shape in (("m.weight", (331, 257)), ("norm.weight", (4099,)), ("p.bias", (4099,))):
                    got = torch_tensor(9, name, shape, dtype, device, block=10_000).float().cpu().numpy()
                    different = np.count_nonzero(got.view(np.uint32) != tensor(9, name, shape, dtype).view(np.uint32))
                    if different:
                        wrong += 1
                        print(f"{engines[-1]}: {name} {dtype}: {different} of {got.size} elements differ from numpy")
    print(f"{len(VECTORS)} vectors on {', '.join(engines)}: {'FAILED' if wrong else 'ok'}")
    return wrong


def main():
    parser = argparse.ArgumentParser(description="Compares random weights with the committed vectors.")
    parser.parse_args()
    sys.exit(1 if self_test() else 0)


if __name__ == "__main__":
    main()
