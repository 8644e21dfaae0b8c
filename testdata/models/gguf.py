#!/usr/bin/env python3
"""Makes testdata/models/gguf: small models as llama.cpp's converter writes them, with what transformers computes.

    LLAMA_CPP=DIR python3 testdata/models/gguf.py            writes everything
    LLAMA_CPP=DIR python3 testdata/models/gguf.py NAME ...   writes those; any other word lists the names

DIR has the sources of llama.cpp, of which conversion/ and gguf-py/ are used. Needs torch, transformers and what these
need; no test runs it.

gguf/models/NAME is a model with random weights, in the numbers of the zoo (generate.py), but for its 32 positions:

    NAME.gguf             as the converter writes it, in BF16; of a model in blocks, matrices in what gguf-py makes of
                          them
    ref_input_ids.npy, ref_logits_f32.npy, ref_greedy_from8.npy    as in the zoo; of a model in blocks, of the values
                          that gguf-py reads the blocks back as

What transformers reads from the same file is compared, for the architectures that it reads: the logits are the same up
to 1e-4.

gguf/blocks has blocks.gguf, three matrices of each type of blocks: one block, five rows of three, and three rows of
seven. Of types that gguf-py does not write, blocks are random bytes with scales that are numbers. blocks.json has the
SHA-256 of what gguf-py reads each matrix back as, in float32.
"""

import contextlib
import hashlib
import io
import json
import os
import pathlib
import sys
import tempfile

import numpy as np
import torch
import transformers

LLAMA_CPP = os.environ.get("LLAMA_CPP") or sys.exit("set LLAMA_CPP to the sources of llama.cpp")
sys.path[:0] = [LLAMA_CPP, os.path.join(LLAMA_CPP, "gguf-py")]

import conversion
import gguf
from conversion.base import ModelBase, ModelType, get_model_architecture
from gguf.quants import dequantize, quantize

import generate

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "gguf")
POSITIONS, PROMPT = 32, 8
MARGIN = 2e-3  # between the two largest logits of a step: amkc is held to 1e-4
DISTINCT = 3  # ids that the continuation has at least
BLOCKS = ["Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "MXFP4"]  # that gguf-py writes
OTHERS = {"Q2_K": [80, 82], "Q3_K": [108], "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208], "IQ4_NL": [0], "IQ4_XS": [0]}

SIZES = {"hidden_size": 40, "intermediate_size": 56, "num_hidden_layers": 3, "num_attention_heads": 4,
         "num_key_value_heads": 2, "vocab_size": 128, "rms_norm_eps": 1e-5}
WHOLE = {**SIZES, "hidden_size": 64, "intermediate_size": 96}  # whole blocks of 32 columns
LAYERNORM = {**{k: v for k, v in SIZES.items() if k != "rms_norm_eps"}, "layer_norm_eps": 1e-5}
CONVOLVED = {**{k: v for k, v in SIZES.items() if k != "rms_norm_eps"}, "norm_eps": 1e-5, "num_hidden_layers": 4,
             "conv_L_cache": 3, "layer_types": ["conv", "full_attention", "conv", "full_attention"]}
LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 64}
TWO_ROPES = {"full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 1e5},
             "sliding_attention": {"rope_type": "default", "rope_theta": 1e4}}
FACTORS = {"rope_type": "longrope", "short_factor": [1 + j / 20 for j in range(4)],
           "long_factor": [1 + j / 2 for j in range(4)], "original_max_position_embeddings": 64,
           "partial_rotary_factor": 0.8}

# Name: the class of the config, its fields, and the type of blocks of matrices, or none.
MODELS = {
    "llama-llama3": ("LlamaConfig", {**SIZES, "rope_parameters": LLAMA3, "tie_word_embeddings": True}, None),
    "llama-biases": ("LlamaConfig", {**SIZES, "head_dim": 24, "attention_bias": True, "mlp_bias": True}, None),
    "llama-q4_0": ("LlamaConfig", {**WHOLE, "tie_word_embeddings": True}, "Q4_0"),
    "llama-q4_1": ("LlamaConfig", WHOLE, "Q4_1"),
    "llama-q8_0": ("LlamaConfig", WHOLE, "Q8_0"),
    "llama-mixed": ("LlamaConfig", WHOLE, {"attn_v": "Q5_0", "ffn_down": "Q5_1", "token_embd": "MXFP4", "": "Q8_0"}),
    "qwen2": ("Qwen2Config", SIZES, None),
    "qwen3-yarn": ("Qwen3Config", {**SIZES, "head_dim": 24, "rope_parameters": {
        "rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 128}}, None),
    "gemma": ("GemmaConfig", {**SIZES, "head_dim": 24}, None),
    "gemma2": ("Gemma2Config", {**SIZES, "head_dim": 24, "query_pre_attn_scalar": 24, "sliding_window": 12,
                                "attn_logit_softcapping": 4.0, "final_logit_softcapping": 5.0}, None),
    "gemma3": ("Gemma3TextConfig", {**SIZES, "num_hidden_layers": 7, "head_dim": 24, "query_pre_attn_scalar": 24,
                                    "sliding_window": 12, "rope_parameters": TWO_ROPES}, None),
    "phi3-long": ("Phi3Config", {**SIZES, "pad_token_id": 0, "rope_parameters": FACTORS,
                                 "max_position_embeddings": 256, "original_max_position_embeddings": 64}, None),
    "granite": ("GraniteConfig", {**SIZES, "embedding_multiplier": 3.0, "attention_multiplier": 0.2,
                                  "residual_multiplier": 0.75, "logits_scaling": 2.0}, None),
    "olmo2": ("Olmo2Config", SIZES, None),
    "olmo3": ("Olmo3Config", {**SIZES, "num_hidden_layers": 4, "sliding_window": 12, "rope_parameters": {
        **TWO_ROPES, "sliding_attention": {"rope_type": "default", "rope_theta": 1e5}}}, None),
    "command-r": ("CohereConfig", {**LAYERNORM, "logit_scale": 0.5}, None),
    "cohere2": ("Cohere2Config", {**LAYERNORM, "num_hidden_layers": 4, "logit_scale": 0.5, "sliding_window": 12},
                None),
    "stablelm": ("StableLmConfig", {**LAYERNORM, "use_qkv_bias": True, "rope_parameters": {
        "partial_rotary_factor": 0.4}}, None),
    "starcoder2": ("Starcoder2Config", {**{k: v for k, v in LAYERNORM.items() if k != "layer_norm_eps"},
                                        "norm_epsilon": 1e-5, "sliding_window": None,
                                        "tie_word_embeddings": True}, None),
    "smollm3": ("SmolLM3Config", {**SIZES, "num_hidden_layers": 4, "pad_token_id": 0}, None),
    "mistral3": ("Ministral3Config", {**SIZES, "head_dim": 24, "rope_parameters": {
        "rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64, "mscale": 1.0,
        "mscale_all_dim": 1.0, "beta_fast": 4.0, "beta_slow": 1.0, "llama_4_scaling_beta": 0.1}}, None),
    "ernie4_5": ("Ernie4_5Config", {**SIZES, "head_dim": 24}, None),
    "arcee": ("ArceeConfig", SIZES, None),
    "exaone4": ("Exaone4Config", {**SIZES, "num_hidden_layers": 4, "sliding_window": 12}, None),
    "hunyuan": ("HunYuanDenseV1Config", {**SIZES, "head_dim": 24}, None),
    "glm4": ("Glm4Config", {**SIZES, "head_dim": 20, "pad_token_id": 0, "attention_bias": True, "rope_parameters": {
        "partial_rotary_factor": 0.4}}, None),
    "seed_oss": ("SeedOssConfig", {**SIZES, "head_dim": 24}, None),
    "mixtral": ("MixtralConfig", {**SIZES, "num_local_experts": 5, "num_experts_per_tok": 2}, None),
    "qwen2moe": ("Qwen2MoeConfig", {**SIZES, "num_experts": 6, "num_experts_per_tok": 3, "moe_intermediate_size": 24,
                                    "shared_expert_intermediate_size": 40}, None),
    "qwen3moe": ("Qwen3MoeConfig", {**SIZES, "head_dim": 24, "num_experts": 6, "num_experts_per_tok": 3,
                                    "moe_intermediate_size": 24, "norm_topk_prob": True}, None),
    "olmoe": ("OlmoeConfig", {**SIZES, "num_experts": 6, "num_experts_per_tok": 3}, None),
    "gpt-oss": ("GptOssConfig", {**SIZES, "head_dim": 24, "num_local_experts": 6, "num_experts_per_tok": 3,
                                 "sliding_window": 12, "rope_parameters": {
        "rope_type": "yarn", "factor": 4.0, "beta_fast": 32.0, "beta_slow": 1.0, "truncate": False,
        "original_max_position_embeddings": 64}}, None),
    "qwen3moe-q4_0": ("Qwen3MoeConfig", {**WHOLE, "num_experts": 4, "num_experts_per_tok": 2,
                                         "moe_intermediate_size": 32, "norm_topk_prob": True}, "Q4_0"),
    "gpt-oss-mxfp4": ("GptOssConfig", {**WHOLE, "intermediate_size": 32, "head_dim": 32, "num_local_experts": 4,
                                       "num_experts_per_tok": 2, "sliding_window": 12, "rope_parameters": {
        "rope_type": "yarn", "factor": 4.0, "beta_fast": 32.0, "beta_slow": 1.0, "truncate": False,
        "original_max_position_embeddings": 64}}, {"exps": "MXFP4", "": "Q8_0"}),
    "ernie4_5-moe": ("Ernie4_5_MoeConfig", {**SIZES, "moe_num_experts": 6, "moe_k": 3, "moe_intermediate_size": 24,
                                            "moe_num_shared_experts": 2, "moe_layer_start_index": 1}, None),
    "glm4moe": ("Glm4MoeConfig", {**SIZES, "head_dim": 20, "pad_token_id": 0, "attention_bias": True,
                                  "use_qk_norm": True, "n_routed_experts": 6, "num_experts_per_tok": 3,
                                  "moe_intermediate_size": 24, "n_shared_experts": 1, "first_k_dense_replace": 1,
                                  "n_group": 1, "topk_group": 1, "routed_scaling_factor": 1.5, "norm_topk_prob": True,
                                  "num_nextn_predict_layers": 0, "rope_parameters": {
        "partial_rotary_factor": 0.4}}, None),
    "lfm2": ("Lfm2Config", {**CONVOLVED, "intermediate_size": 56, "block_auto_adjust_ff_dim": False}, None),
    "lfm2-q8_0": ("Lfm2Config", {**CONVOLVED, "hidden_size": 64, "intermediate_size": 96,
                                 "block_auto_adjust_ff_dim": False}, "Q8_0"),
    "lfm2moe": ("Lfm2MoeConfig", {**CONVOLVED, "num_experts": 6, "num_experts_per_tok": 3, "num_dense_layers": 1,
                                  "moe_intermediate_size": 24}, None),
}
# Models of whose files transformers does not read all fields.
UNREAD = {"gemma2", "qwen3-yarn", "gemma3", "stablelm", "phi3-long", "llama-llama3", "llama-biases", "starcoder2",
          "gpt-oss", "gpt-oss-mxfp4"}


def without_tokenizer(model):
    """Names tokens, of which transformers takes the number, and no tokenizer."""
    model.gguf_writer.add_tokenizer_model("none")
    model.gguf_writer.add_token_list([f"<{i}>" for i in range(SIZES["vocab_size"])])


def convert(folder, out):
    """Writes the model of a folder as the converter does, but for its tokenizer."""
    fields = ModelBase.load_hparams(pathlib.Path(folder), False)
    cls = conversion.get_model_class(get_model_architecture(fields, ModelType.TEXT))
    cls.set_vocab = without_tokenizer
    model = cls(pathlib.Path(folder), gguf.LlamaFileType.MOSTLY_BF16, pathlib.Path(out), model_name="tiny")
    if hasattr(model, "impl"):
        type(model.impl).set_vocab = without_tokenizer
    with contextlib.redirect_stderr(io.StringIO()):
        model.write()


def type_of(name, blocks):
    """The type of blocks that a matrix of a file gets; none: it stays as it is."""
    if isinstance(blocks, dict):
        return next(kind for part, kind in blocks.items() if part in name)
    return blocks


def requantise(path, blocks):
    """Writes a file again with its matrices in blocks, and returns what gguf-py reads them back as."""
    reader = gguf.GGUFReader(path)
    writer = gguf.GGUFWriter(path + ".new", reader.fields["general.architecture"].contents())
    for key, field in reader.fields.items():
        if not key.startswith("GGUF.") and key != "general.architecture":
            writer.add_key_value(key, field.contents(), field.types[0],
                                 field.types[-1] if len(field.types) > 1 else None)
    values = {}
    for t in reader.tensors:
        data = dequantize(t.data, t.tensor_type)
        plain = "ffn_gate_inp" in t.name or "shortconv.conv" in t.name or not t.name.endswith("weight")
        if len(t.shape) > 1 and blocks and not plain:
            kind = gguf.GGMLQuantizationType[type_of(t.name, blocks)]
            data = quantize(data, kind)
            values[t.name] = dequantize(data, kind)
            writer.add_tensor(t.name, data, raw_dtype=kind)
        else:
            writer.add_tensor(t.name, np.array(t.data).reshape(t.shape[::-1]) if t.tensor_type.value == 0 else t.data,
                              raw_dtype=t.tensor_type)
    writer.write_header_to_file(), writer.write_kv_data_to_file(), writer.write_tensors_to_file()
    writer.close()
    os.replace(path + ".new", path)
    return values


def unpermuted(rows, heads):
    """Rows of a Llama's q or k in the order that transformers has them in."""
    return rows.reshape(heads, rows.shape[0] // heads // 2, 2, *rows.shape[1:]).swapaxes(1, 2).reshape(rows.shape)


def of_experts(model, name, values):
    """What transformers has of all experts of a layer in one tensor; of gpt-oss its rows are columns."""
    def stored(part):
        return values[f"blk.{name.split('.')[2]}.ffn_{part}_exps.weight"]
    transposed = "GptOss" in type(model).__name__
    if name.endswith("down_proj"):
        data = stored("down")
    elif transposed:
        data = np.stack([stored("gate"), stored("up")], 2).reshape(len(stored("up")), -1, stored("up").shape[-1])
    else:
        data = np.concatenate([stored("gate"), stored("up")], 1)
    return data.swapaxes(1, 2) if transposed else data


def read_back(model, values, arch):
    """Gives a model the values of a file in blocks."""
    names = gguf.get_tensor_name_map({v: k for k, v in gguf.MODEL_ARCH_NAMES.items()}[arch],
                                     model.config.num_hidden_layers)
    for name, p in model.named_parameters():
        if name.endswith(("experts.gate_up_proj", "experts.down_proj")):
            p.data = torch.from_numpy(np.ascontiguousarray(of_experts(model, name, values)))
            continue
        of_file = (names.get_name(name.removesuffix(".weight")) or "") + ".weight"
        if of_file in values and name.endswith("weight"):
            data = values[of_file]
            if arch == "llama" and ("attn_q" in of_file or "attn_k" in of_file):
                data = unpermuted(data, model.config.num_attention_heads if "attn_q" in of_file
                                  else model.config.num_key_value_heads)
            p.data = torch.from_numpy(np.array(data))


def make(name):
    kind, fields, blocks = MODELS[name]
    folder = os.path.join(FOLDER, "models", name)
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, name + ".gguf")
    config = generate.config_of(kind, dict(fields))
    for seed in range(100):
        model = generate.made(config, attn_implementation="eager")
        generate.set_weights(model, seed)
        with tempfile.TemporaryDirectory() as source:
            model.to(torch.bfloat16).save_pretrained(source)
            config_path = os.path.join(source, "config.json")
            with open(config_path, encoding="utf-8") as file:
                saved = json.load(file)
            saved.setdefault("rotary_pct", 1.0)  # which the converter of Cohere2 asks for
            with open(config_path, "w", encoding="utf-8") as file:
                json.dump(saved, file)
            if "Gemma3" in kind:  # of which it asks how many tokens there are
                with open(os.path.join(source, "tokenizer.json"), "w", encoding="utf-8") as file:
                    vocab = {str(i): i for i in range(SIZES["vocab_size"])}
                    json.dump({"model": {"vocab": vocab}, "added_tokens": []}, file)
            convert(source, path)
            values = requantise(path, blocks)
            model = generate.load(source)
        if values:
            read_back(model, values, gguf.GGUFReader(path).fields["general.architecture"].contents())
        ids = np.random.default_rng(seed).integers(0, fields["vocab_size"], POSITIONS).tolist()
        want = generate.logits(model, ids)
        text, margin = generate.greedy(model, ids[:PROMPT], POSITIONS - PROMPT)
        if margin >= MARGIN and len(set(text)) >= DISTINCT:
            break
    else:
        raise RuntimeError(f"{name}: no seed will do")
    np.save(os.path.join(folder, "ref_input_ids.npy"), np.array(ids, np.int32))
    np.save(os.path.join(folder, "ref_logits_f32.npy"), want.astype(np.float32))
    np.save(os.path.join(folder, "ref_greedy_from8.npy"), np.array(text, np.int32))
    other = "not compared"
    if name not in UNREAD:
        try:
            read = transformers.AutoModelForCausalLM.from_pretrained(folder, gguf_file=name + ".gguf",
                                                                     dtype=torch.float32).eval()
            other = f"{np.abs(generate.logits(read, ids) - want).max():.2g}"
        except (ValueError, RuntimeError, NotImplementedError, KeyError) as error:
            other = f"not read: {str(error)[:60]}"
    print(f"{name}: seed {seed}, {os.path.getsize(path) // 1024} KiB, margin {margin:.2g}, of the file by "
          f"transformers: {other}")


def make_blocks():
    folder = os.path.join(FOLDER, "blocks")
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, "blocks.gguf")
    writer, random, digests = gguf.GGUFWriter(path, "llama"), np.random.default_rng(1), {}
    for name in BLOCKS + list(OTHERS):
        kind = gguf.GGMLQuantizationType[name]
        elements, size = gguf.GGML_QUANT_SIZES[kind]
        for rows, columns in [(1, 1), (5, 3), (3, 7)]:
            if name in BLOCKS:
                data = quantize(random.standard_normal((rows, columns * elements)).astype(np.float32), kind)
            else:
                data = random.integers(0, 256, (rows, columns, size), np.uint8)
                for at in OTHERS[name]:
                    scales = random.standard_normal((rows, columns)).astype(np.float16)
                    data[:, :, at : at + 2] = scales[..., None].view(np.uint8)
                data = data.reshape(rows, columns * size)
            of = f"{name}.{rows}x{columns}"
            writer.add_tensor(of, data, raw_dtype=kind)
            values = np.ascontiguousarray(dequantize(data, kind), dtype="<f4")
            digests[of] = hashlib.sha256(values.tobytes()).hexdigest()
    writer.write_header_to_file(), writer.write_kv_data_to_file(), writer.write_tensors_to_file()
    writer.close()
    with open(os.path.join(folder, "blocks.json"), "w", encoding="utf-8") as file:
        json.dump(digests, file, indent=1)
        file.write("\n")


def main():
    names = sys.argv[1:] or ["blocks", *MODELS]
    if unknown := [n for n in names if n != "blocks" and n not in MODELS]:
        sys.exit(f"{', '.join(unknown)}: not a model; the models are blocks, {', '.join(MODELS)}")
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    torch.set_num_threads(1)
    for name in names:
        make_blocks() if name == "blocks" else make(name)


if __name__ == "__main__":
    main()
