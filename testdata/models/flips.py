"""Other values for fields of configs, by what a field is called, what it has and how its class annotates it."""

import inspect
import re
import sys
import typing

import transformers
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS, RopeParameters

ABSENT = object()
LAYER_TYPES = ["full_attention", "sliding_attention", "chunked_attention"]
ROPE = {"linear": {"factor": 3.0}, "dynamic": {"factor": 3.0},
        "yarn": {"factor": 4.0, "original_max_position_embeddings": 16, "beta_fast": 4.0, "beta_slow": 0.5,
                 "mscale": 1.5, "mscale_all_dim": 0.5, "truncate": True},
        "longrope": {"factor": 4.0, "original_max_position_embeddings": 16},
        "llama3": {"factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 3.0,
                   "original_max_position_embeddings": 16},
        "proportional": {"factor": 2.0, "partial_rotary_factor": 0.5}}


def rope_keys():
    source = inspect.getsource(sys.modules[RopeParameters.__module__])
    read = re.findall(r"""rope_parameters(?:_dict)?(?:\.get|\.setdefault|\.pop)?[(\[]\s*"(\w+)\"""", source)
    return sorted({*RopeParameters.__annotations__, *read} - {"rope_parameters"})


def ropes(pairs):
    """An object of each type."""
    theta = {"rope_theta": 500.0}
    factors = {"short_factor": [1 + j / 4 for j in range(pairs)], "long_factor": [1 + j * j for j in range(pairs)]}
    return {kind: {"rope_type": kind, **theta, **ROPE.get(kind, {}), **(factors if kind == "longrope" else {})}
            for kind in ["default", *ROPE_INIT_FUNCTIONS]}


def samples(name, hint, layers, pairs):
    """Values of a field that has none, by its name or by its annotation."""
    key = name.split(".")[-1]
    known = {
        "rope_parameters": list(ropes(pairs).values()),
        "rope_scaling": [{"type" if old else "rope_type": v["rope_type"],
                          **{key: x for key, x in v.items() if key != "rope_type"}}
                         for v in ropes(pairs).values() for old in (True, False)],
        "rope_type": list(ropes(pairs)), "type": list(ropes(pairs)),
        "dtype": ["float32", "bfloat16", "float16"], "torch_dtype": ["float32", "bfloat16", "float16"],
        "rope_theta": [100.0, 1e4, 1e5], "rope_local_base_freq": [50.0, 1e4],
        "short_factor": [[2.0] * pairs], "long_factor": [[2.0] * pairs], "mrope_section": [[pairs, 0, 0]],
        "layer_types": [[kind] * layers for kind in LAYER_TYPES] + [[kind, *["full_attention"] * (layers - 1)] for
                                                                   kind in LAYER_TYPES[1:]],
        "sliding_window_pattern": [1, 2, 3], "is_causal": [True, False],
        "id2label": [{"0": "no", "1": "yes", "2": "perhaps"}], "label2id": [{"no": 0, "yes": 1, "perhaps": 2}],
        "per_layer_config": [{"1": {"intermediate_size": 24}}, {"1": {"num_key_value_heads": 4}}],
        "original_max_position_embeddings": [8, 24, 100], "partial_rotary_factor": [0.5, 1.0],
    }
    if key in known:
        return known[key]
    kinds = {typing.get_origin(t) or t for t in (typing.get_args(hint) or [hint])}
    choices = [c for t in (hint, *typing.get_args(hint)) if typing.get_origin(t) is typing.Literal
               for c in typing.get_args(t)]
    out = [True, False] if bool in kinds else []
    out += [0, 1, 2, 5] if int in kinds else []
    out += [0.5, 2.0] if float in kinds else []
    out += ["other"] if str in kinds else []
    out += [[1], [2, 3]] if list in kinds else []
    return choices or out or [True, 2]


def values(name, value, hint, layers, pairs):
    """Other values of a field."""
    if name.split(".")[-1] in ("hidden_act", "hidden_activation", "activation", "activation_function", "ffn_act",
                               "mlp_hidden_act"):
        out = list(transformers.activations.ACT2FN)
    elif value is ABSENT or value is None:
        out = samples(name, hint, layers, pairs)
        if ".rope_" in "." + name.rpartition(".")[0]:  # a key that the type may have, or is of another
            return out[:1]
    elif isinstance(value, bool):
        out = [not value]
    elif isinstance(value, int):
        out = [value + 1, 2 * value, value // 2, 0, *([1] if value else [])]
        out += [v for v in samples(name, hint, layers, pairs) if isinstance(v, list)]
    elif isinstance(value, float):
        out = [4 * value, value / 4, 1.0] if value else [0.5, 1.0]
    elif isinstance(value, list) and value and all(isinstance(v, (int, float)) for v in value):
        out = [[3 * v for v in value], [v * (3 if i == 1 else 1) for i, v in enumerate(value)], value[:-1]]
    elif isinstance(value, list):
        out = [value[::-1], value[:-1], *samples(name, hint, layers, pairs)]
    else:
        out = samples(name, hint, layers, pairs)
    out += [None, ABSENT]
    return [v for i, v in enumerate(out) if not any(same(v, w) for w in [value, *out[:i]])]


def same(a, b):
    return a is b or type(a) is type(b) and a == b
