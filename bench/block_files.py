"""GGUF files with random blocks, of the shape that a config.json has: what llama.cpp and amkc are timed on.

    python3 bench/block_files.py MODEL OUT.gguf KIND      MODEL has a config.json of llama, qwen3_moe or gpt_oss

KIND is Q4_0, Q4_1, Q8_0 or Q4_K_M, and MXFP4 for gpt_oss: experts in MXFP4 and the rest in Q8_0, as its files have
them. Scales have both signs, or minima that cancel the mean, so the mean of each matrix is 0: without that random
models magnify errors, or hide them (docs/gguf.md). There is no tokenizer. Needs numpy.
"""

import json
import struct
from pathlib import Path

import numpy as np

import blocks

SPREAD = 0.02  # standard deviation of elements, about
ROTATED, EXPERT = "rotated", "expert"


def halves(rng, n, about, signed=False):
    s = about * rng.uniform(0.75, 1.25, n)
    if signed:
        s *= rng.choice((-1.0, 1.0), n)
    return s.astype(np.float16).view(np.uint8).reshape(-1, 2)


def q4_0(rng, b):
    b[:, :2] = halves(rng, len(b), SPREAD / 4.6, signed=True)


def q8_0(rng, b):
    b[:, :2] = halves(rng, len(b), SPREAD / 73.9, signed=True)


def q4_1(rng, b):
    d = halves(rng, len(b), SPREAD / 4.6)
    b[:, :2] = d
    b[:, 2:4] = (-7.5 * d.copy().view(np.float16)).astype(np.float16).view(np.uint8)


def q4_k(rng, b):
    """d·scale·q − dmin·min, with min = scale and dmin = 7.5 d."""
    d = halves(rng, len(b), SPREAD / (4.6 * 36))
    b[:, :2] = d
    b[:, 2:4] = (7.5 * d.copy().view(np.float16)).astype(np.float16).view(np.uint8)
    b[:, 8:12] = b[:, 4:8]
    low = b[:, 12:16] & 15
    b[:, 12:16] = low | low << 4


def q6_k(rng, b):
    b[:, 208:] = halves(rng, len(b), SPREAD / (18.5 * 74))


def mxfp4(rng, b):
    b[:, 0] = rng.integers(118, 121, len(b))  # 2^-9 to 2^-7, of elements up to 6


# The code of a type, elements and bytes of a block, and what makes random bytes a block.
TYPES = {"F32": (0, 1, 4, None), "Q4_0": (2, 32, 18, q4_0), "Q4_1": (3, 32, 20, q4_1), "Q8_0": (8, 32, 34, q8_0),
         "Q4_K": (12, 256, 144, q4_k), "Q6_K": (14, 256, 210, q6_k), "MXFP4": (39, 32, 17, mxfp4)}
KINDS = (*blocks.KINDS, "Q4_1", "MXFP4")


def type_of(kind, layers, layer, larger):
    """The type of a matrix: of a mix, those of values and down in half of the layers are larger."""
    if kind == "MXFP4":
        return "Q8_0"
    if kind != blocks.MIXED:
        return kind
    more = layer < layers // 8 or layer >= 7 * layers // 8 or (layer - layers // 8) % 3 == 2
    return "Q6_K" if larger and more else "Q4_K"


def tensors(c, kind):
    """Names, types and shapes, rows first."""
    family, layers, hidden, vocab = c["model_type"], c["num_hidden_layers"], c["hidden_size"], c["vocab_size"]
    heads, kv = c["num_attention_heads"], c["num_key_value_heads"]
    size = c.get("head_dim") or hidden // heads
    plain = type_of(kind, layers, layers // 8, False)
    yield "token_embd.weight", plain, (vocab, hidden)
    yield "output_norm.weight", "F32", (hidden,)
    if not c.get("tie_word_embeddings"):
        yield "output.weight", "Q6_K" if kind == blocks.MIXED else plain, (vocab, hidden)
    for i in range(layers):
        p = f"blk.{i}."
        large = type_of(kind, layers, i, True)
        matrices = (("attn_q", plain, heads * size, hidden), ("attn_k", plain, kv * size, hidden),
                    ("attn_v", large, kv * size, hidden), ("attn_output", plain, hidden, heads * size))
        for name, t, rows, columns in matrices:
            yield p + name + ".weight", t, (rows, columns)
            if family == "gpt_oss":
                yield p + name + ".bias", "F32", (rows,)
        yield p + "attn_norm.weight", "F32", (hidden,)
        yield p + ("post_attention_norm" if family == "gpt_oss" else "ffn_norm") + ".weight", "F32", (hidden,)
        if family == "qwen3_moe":
            yield p + "attn_q_norm.weight", "F32", (size,)
            yield p + "attn_k_norm.weight", "F32", (size,)
        if family == "gpt_oss":
            yield p + "attn_sinks.weight", "F32", (heads,)
        yield from (feed_forward(c, family, p, kind, plain, large, hidden))


def feed_forward(c, family, p, kind, plain, large, hidden):
    if family == "llama":
        inter = c["intermediate_size"]
        yield p + "ffn_gate.weight", plain, (inter, hidden)
        yield p + "ffn_up.weight", plain, (inter, hidden)
        yield p + "ffn_down.weight", large, (hidden, inter)
        return
    n = c.get("num_experts") or c["num_local_experts"]
    inter = c.get("moe_intermediate_size") or c["intermediate_size"]
    ours = "MXFP4" if kind == "MXFP4" else plain
    down = "MXFP4" if kind == "MXFP4" else large
    yield p + "ffn_gate_inp.weight", "F32", (n, hidden)
    for name, t, rows, columns in (("gate", ours, inter, hidden), ("up", ours, inter, hidden),
                                   ("down", down, hidden, inter)):
        yield p + f"ffn_{name}_exps.weight", t, (n, rows, columns)
        if family == "gpt_oss":
            yield p + f"ffn_{name}_exps.bias", "F32", (n, rows)
    if family == "gpt_oss":
        yield p + "ffn_gate_inp.bias", "F32", (n,)


ARCHITECTURES = {"llama": "llama", "qwen3_moe": "qwen3moe", "gpt_oss": "gpt-oss"}


def fields(c):
    a = ARCHITECTURES[c["model_type"]]
    size = c.get("head_dim") or c["hidden_size"] // c["num_attention_heads"]
    of = {"block_count": c["num_hidden_layers"], "embedding_length": c["hidden_size"],
          "feed_forward_length": c["intermediate_size"], "attention.head_count": c["num_attention_heads"],
          "attention.head_count_kv": c["num_key_value_heads"], "context_length": c["max_position_embeddings"],
          "attention.key_length": size, "attention.value_length": size, "rope.dimension_count": size,
          "rope.freq_base": float(c["rope_theta"]), "attention.layer_norm_rms_epsilon": float(c["rms_norm_eps"]),
          "vocab_size": c["vocab_size"]}
    if a != "llama":
        of |= {"expert_count": c.get("num_experts") or c["num_local_experts"],
               "expert_used_count": c["num_experts_per_tok"],
               "expert_feed_forward_length": c.get("moe_intermediate_size") or c["intermediate_size"]}
    if a == "gpt-oss":
        scaling = c.get("rope_scaling") or c["rope_parameters"]
        of |= {"attention.sliding_window": c["sliding_window"], "rope.scaling.type": "yarn",
               "rope.scaling.factor": float(scaling["factor"]),
               "rope.scaling.original_context_length": scaling["original_max_position_embeddings"]}
    return {"general.architecture": a, "tokenizer.ggml.model": "none"} | {f"{a}.{k}": v for k, v in of.items()}


def text(s):
    return struct.pack("<Q", len(s.encode())) + s.encode()


def field(key, v):
    if isinstance(v, str):
        return text(key) + struct.pack("<I", 8) + text(v)
    return text(key) + (struct.pack("<If", 6, v) if isinstance(v, float) else struct.pack("<II", 4, v))


def data(rng, name, t, n):
    """The bytes of a tensor of n elements."""
    _, elements, size, shape = TYPES[t]
    if shape:
        b = np.frombuffer(rng.bytes(n // elements * size), np.uint8).reshape(-1, size).copy()
        shape(rng, b)
        return b
    if "norm" in name:
        return (1 + 0.1 * rng.uniform(-1, 1, n)).astype(np.float32)
    return (SPREAD * rng.standard_normal(n)).astype(np.float32)


def write(model, out, kind):
    c = json.loads((Path(model) / "config.json").read_text(encoding="utf-8"))
    c |= c.get("rope_parameters") or {}  # where transformers 5 has the base
    written = list(tensors(c, kind))
    head = [field(k, v) for k, v in fields(c).items()]
    table, offset = [], 0
    for name, t, shape in written:
        code, elements, size, _ = TYPES[t]
        table.append(text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape[::-1], code, offset))
        offset += (int(np.prod(shape)) // elements * size + 31) // 32 * 32
    rng = np.random.default_rng(1)
    with open(out, "wb") as file:
        file.write(b"GGUF" + struct.pack("<IQQ", 3, len(table), len(head)) + b"".join(head + table))
        file.write(bytes(-file.tell() % 32))
        for name, t, shape in written:
            file.write(data(rng, name, t, int(np.prod(shape))))
            file.write(bytes(-file.tell() % 32))


if __name__ == "__main__":
    write(**vars(blocks.arguments(__doc__, KINDS)))
