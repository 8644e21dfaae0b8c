#!/usr/bin/env python3
"""Makes testdata/models/quantised: small checkpoints with quantised weights, each written by the library whose format it
is, with what that library takes the weights for.

    python3 testdata/models/quantised.py            writes everything
    python3 testdata/models/quantised.py NAME ...   writes those; any other word lists the names

Needs torch, transformers, compressed-tensors and gptqmodel; no test runs it. There are two kinds.

quantised/matrices/NAME is a few matrices in one format, of shapes that no model needs:

    config.json               what the library puts into quantization_config
    model.safetensors         the tensors that it stores
    dequantised.safetensors   the matrices as it reads them back, in its dtype, which is that of the scales

quantised/models/NAME is a model as the zoo has them (generate.py), but for its 32 positions. Its logits are computed in
float32 with the weights that the library makes of the stored numbers in float32: scale times (q - zero), without a
rounding. dequantised.json has the SHA-256 of each matrix in the library's dtype instead of the matrices.
"""

import hashlib
import json
import os
import re
import shutil
import sys

import numpy as np
import torch
import transformers
from compressed_tensors.compressors import BaseCompressor
from compressed_tensors.compressors.nvfp4.helpers import unpack_fp4_from_uint8
from compressed_tensors.quantization import QuantizationArgs, QuantizationConfig, QuantizationScheme
from compressed_tensors.quantization.lifecycle.forward import dequantize
from compressed_tensors.quantization.utils import calculate_qparams, generate_gparam
from gptqmodel.nn_modules.qlinear.torch import TorchLinear
from gptqmodel.nn_modules.qlinear.torch_awq import AwqTorchLinear
from gptqmodel.quantization import FORMAT, QuantizeConfig
from gptqmodel.quantization.awq.utils.packing_utils import dequantize_gemm
from gptqmodel.utils.model import convert_gptq_v1_to_v2_format_module, convert_gptq_v2_to_v1_format_module
from safetensors.torch import save_file
from transformers.integrations.finegrained_fp8 import Fp8Dequantize, Fp8Quantize
from transformers.utils.quantization_config import FineGrainedFP8Config

import generate

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "quantised")


class CompressedTensors:
    """Weights as llm-compressor writes them."""

    def __init__(self, layout, dtype, inputs=False, targets=("Linear",), **args):
        self.layout, self.dtype = layout, dtype
        self.args = QuantizationArgs(**args)
        dynamic = QuantizationArgs(num_bits=8, type=self.args.type, dynamic=True, strategy="token") if inputs else None
        self.scheme = QuantizationScheme(targets=list(targets), weights=self.args, input_activations=dynamic, format=layout)

    def config(self, ignore):
        config = QuantizationConfig(config_groups={"group_0": self.scheme}, format=self.layout, ignore=ignore,
                                    quantization_status="compressed")
        return config.model_dump(mode="json")

    def spans(self, w):
        """The least and the largest element of each group, in the shape of the scales."""
        args, (rows, cols) = self.args, w.shape
        if args.strategy == "tensor":
            return w.min().reshape(1), w.max().reshape(1)
        if args.strategy == "channel":
            return w.amin(1, keepdim=True), w.amax(1, keepdim=True)
        if args.strategy == "group":
            parts = w.reshape(rows, -1, args.group_size)
            return parts.amin(2), parts.amax(2)
        high, wide = args.block_structure
        padded = torch.nn.functional.pad(w, (0, -cols % wide, 0, -rows % high))
        blocks = padded.reshape(padded.shape[0] // high, high, padded.shape[1] // wide, wide)
        return blocks.amin((1, 3)), blocks.amax((1, 3))

    def store(self, w):
        w = w.to(self.dtype)
        scale, zero = calculate_qparams(*self.spans(w), self.args)
        state = {"weight": w, "weight_scale": scale.to(self.dtype)}
        if not self.args.symmetric:
            state["weight_zero_point"] = zero
        return BaseCompressor.get_value_from_registry(self.layout).compress(state, self.scheme)

    def read(self, state, dtype=None):
        state = dict(state)
        if dtype:
            state["weight_scale"] = state["weight_scale"].to(dtype)
        return BaseCompressor.get_value_from_registry(self.layout).decompress(state, self.scheme)["weight"]


class NVFP4(CompressedTensors):
    """The same with a scale of the whole matrix besides, by which the others are divided."""

    def __init__(self):
        super().__init__("nvfp4-pack-quantized", BF16, num_bits=4, type="float", strategy="tensor_group", group_size=16,
                         scale_dtype=torch.float8_e4m3fn, zp_dtype=torch.float8_e4m3fn)

    def spans(self, w):
        parts = w.reshape(w.shape[0], -1, self.args.group_size)
        return parts.amin(2), parts.amax(2)

    def store(self, w):
        w = w.to(self.dtype)
        whole = generate_gparam(w.amin().reshape(1), w.amax().reshape(1))
        scale, _ = calculate_qparams(*self.spans(w), self.args, global_scale=whole)
        state = {"weight": w, "weight_scale": scale, "weight_global_scale": whole}
        return BaseCompressor.get_value_from_registry(self.layout).compress(state, self.scheme)

    def read(self, state, dtype=None):
        if not dtype:
            return super().read(state) + 0.0  # without -0, which amkc reads as 0
        rows, half = state["weight_packed"].shape
        return dequantize(unpack_fp4_from_uint8(state["weight_packed"], rows, 2 * half, dtype),
                          state["weight_scale"].to(dtype), args=self.args, dtype=dtype,
                          global_scale=state["weight_global_scale"])


class MXFP4(CompressedTensors):
    """Elements as those of NVFP4, with a power of two for each 32 of them and nothing besides."""

    def __init__(self):
        super().__init__("mxfp4-pack-quantized", BF16, num_bits=4, type="float", strategy="group", group_size=32,
                         scale_dtype=torch.uint8, zp_dtype=torch.uint8)

    def read(self, state, dtype=None):
        read = super().read(state)
        return read.to(dtype) if dtype else read  # which is exact


def scales_and_zeros(w, bits, group, symmetric):
    """Those of GPTQ and AWQ, [rows, groups], with zero points from 0 on."""
    rows, cols = w.shape
    group = cols if group == -1 else group
    parts = torch.nn.functional.pad(w, (0, -cols % group)).reshape(rows, -1, group)
    low, high = parts.amin(2).clamp(max=0), parts.amax(2).clamp(min=0)
    if symmetric:
        scale = torch.maximum(-low, high) * 2 / (2**bits - 1)
        return scale.half().float(), torch.full_like(scale, 2 ** (bits - 1))
    scale = ((high - low) / (2**bits - 1)).half().float()
    return scale, torch.round(-low / scale).clamp(1, 2**bits - 1)


class GPTQ:
    """Weights as GPTQModel writes them."""

    def __init__(self, layout, bits, group, symmetric, old=False):
        self.layout, self.bits, self.group, self.symmetric, self.old = layout, bits, group, symmetric, old
        self.settings = QuantizeConfig(bits=bits, group_size=group, sym=symmetric, desc_act=False, format=layout)

    def config(self, ignore):
        del ignore  # of a module that is not quantised, nothing is said
        if self.old:  # as AutoGPTQ wrote it
            return {"bits": self.bits, "group_size": self.group, "damp_percent": 0.01, "desc_act": False,
                    "static_groups": False, "sym": self.symmetric, "true_sequential": True,
                    "model_name_or_path": None, "model_file_base_name": "model"}
        settings = {**self.settings.to_dict(), "quant_method": "gptq"}
        settings["meta"].pop("offload_to_disk_path")  # a temporary folder
        return settings

    def module(self, rows, cols):
        return TorchLinear(bits=self.bits, group_size=self.group, sym=self.symmetric, desc_act=False, in_features=cols,
                           out_features=rows, register_buffers=True)

    def store(self, w):
        linear = torch.nn.Linear(w.shape[1], w.shape[0], bias=False)
        linear.weight.data = w.float()
        module = self.module(*w.shape)
        scale, zero = scales_and_zeros(w.float(), self.bits, self.group, self.symmetric)
        module.pack_original(linear, scale, zero, g_idx=module.g_idx)
        if self.layout == FORMAT.GPTQ:
            convert_gptq_v2_to_v1_format_module(module, self.settings)
        return {part: getattr(module, part).clone() for part in ("qweight", "qzeros", "scales", "g_idx")}

    def read(self, state, dtype=None):
        cols, rows = state["g_idx"].shape[0], state["scales"].shape[1]
        module = self.module(rows, cols)
        for part, tensor in state.items():
            setattr(module, part, tensor.clone())
        if self.layout == FORMAT.GPTQ:
            convert_gptq_v1_to_v2_format_module(module, self.bits, torch.int32)
        if dtype:
            module.scales = module.scales.to(dtype)
        module._triton_dequant_enabled = False
        return module.eval().dequantize_weight().T.contiguous()


class AWQ:
    """Weights as AutoAWQ writes them, by GPTQModel, which took it over."""

    def __init__(self, group):
        self.group = group

    def config(self, ignore):
        return {"quant_method": "awq", "bits": 4, "group_size": self.group, "zero_point": True, "version": "gemm",
                "modules_to_not_convert": ignore or None}

    def store(self, w):
        linear = torch.nn.Linear(w.shape[1], w.shape[0], bias=False)
        linear.weight.data = w.float()
        module = AwqTorchLinear(bits=4, group_size=self.group, sym=False, desc_act=False, in_features=w.shape[1],
                                out_features=w.shape[0], register_buffers=True)
        scale, zero = scales_and_zeros(w.float(), 4, self.group, False)
        module.pack(linear, scale.half(), zero.half())
        return {part: getattr(module, part).clone() for part in ("qweight", "qzeros", "scales")}

    def read(self, state, dtype=None):
        scales = state["scales"].to(dtype or state["scales"].dtype)
        group = state["qweight"].shape[0] if self.group == -1 else self.group
        return dequantize_gemm(state["qweight"], state["qzeros"], scales, 4, group).T.contiguous()


class FP8:
    """Weights as transformers writes them, and DeepSeek."""

    def __init__(self, block, scheme="dynamic"):
        self.block, self.scheme = block, scheme
        self.quantization_config = FineGrainedFP8Config(weight_block_size=block)  # as Fp8Quantize looks for it

    def config(self, ignore):
        return {"quant_method": "fp8", "activation_scheme": self.scheme, "weight_block_size": self.block,
                "modules_to_not_convert": ignore or None}

    def store(self, w):
        return Fp8Quantize(self)._quantize_one("weight", w)

    def read(self, state, dtype=None):
        return Fp8Dequantize(self)._dequantize_one(state["weight"], state["weight_scale_inv"], dtype)


BF16, F16, F32 = torch.bfloat16, torch.float16, torch.float32
INT4, INT8, E4M3 = {"num_bits": 4}, {"num_bits": 8}, {"num_bits": 8, "type": "float"}
MATRICES = {  # the format, and the shapes of its matrices
    "ct-int4-g32": (CompressedTensors("pack-quantized", BF16, **INT4, strategy="group", group_size=32),
                    [(13, 96), (24, 256)]),
    "ct-int4-g64-zeros": (CompressedTensors("pack-quantized", BF16, **INT4, strategy="group", group_size=64,
                                            symmetric=False), [(13, 192), (24, 256)]),
    "ct-int4-g128-zeros-f16": (CompressedTensors("pack-quantized", F16, **INT4, strategy="group", group_size=128,
                                                 symmetric=False), [(19, 128), (24, 384)]),
    "ct-int4-g256": (CompressedTensors("pack-quantized", F16, **INT4, strategy="group", group_size=256), [(11, 512)]),
    "ct-int4-channel": (CompressedTensors("pack-quantized", BF16, **INT4, strategy="channel"), [(13, 75), (9, 301)]),
    "ct-int4-channel-zeros-f32": (CompressedTensors("pack-quantized", F32, **INT4, strategy="channel",
                                                    symmetric=False), [(13, 75), (9, 301)]),
    "ct-int8-packed-zeros": (CompressedTensors("pack-quantized", BF16, **INT8, strategy="group", group_size=128,
                                               symmetric=False), [(11, 256)]),
    "ct-int8-packed-channel": (CompressedTensors("pack-quantized", BF16, **INT8, strategy="channel"), [(11, 131)]),
    "ct-int8-channel": (CompressedTensors("int-quantized", BF16, True, **INT8, strategy="channel"), [(11, 131)]),
    "ct-int8-channel-zeros": (CompressedTensors("int-quantized", F16, **INT8, strategy="channel", symmetric=False),
                              [(11, 131)]),
    "ct-int8-tensor": (CompressedTensors("int-quantized", F32, **INT8, strategy="tensor"), [(11, 131)]),
    "ct-fp8-channel": (CompressedTensors("float-quantized", BF16, True, **E4M3, strategy="channel"), [(11, 131)]),
    "ct-fp8-tensor": (CompressedTensors("float-quantized", BF16, **E4M3, strategy="tensor"), [(11, 131)]),
    "ct-fp8-blocks": (CompressedTensors("float-quantized", BF16, **E4M3, strategy="block",
                                        block_structure=[128, 128]), [(150, 200)]),
    "ct-nvfp4": (NVFP4(), [(13, 96), (24, 272)]),
    "ct-mxfp4": (MXFP4(), [(13, 96), (24, 288)]),
    "gptq-g128": (GPTQ(FORMAT.GPTQ, 4, 128, True), [(32, 256), (64, 384)]),
    "gptq-g32-zeros": (GPTQ(FORMAT.GPTQ, 4, 32, False), [(32, 96), (40, 160)]),
    "gptq-old": (GPTQ(FORMAT.GPTQ, 4, 128, True, old=True), [(32, 256)]),
    "gptq-v2-g64-zeros": (GPTQ(FORMAT.GPTQ_V2, 4, 64, False), [(32, 192)]),
    "gptq-v2-g128": (GPTQ(FORMAT.GPTQ_V2, 4, 128, True), [(32, 256)]),
    "gptq-int8-rows": (GPTQ(FORMAT.GPTQ, 8, -1, True), [(32, 160)]),
    "gptq-int8-zeros": (GPTQ(FORMAT.GPTQ, 8, 64, False), [(24, 160)]),
    "awq-g128": (AWQ(128), [(24, 256)]),
    "awq-g32": (AWQ(32), [(40, 96)]),
    "awq-rows": (AWQ(-1), [(16, 96)]),
    "fp8-blocks": (FP8([128, 128]), [(256, 128)]),
    "fp8-tensor": (FP8(None, "static"), [(24, 100)]),
}


TINY = {"vocab_size": 97, "hidden_size": 128, "intermediate_size": 160, "num_hidden_layers": 2,
        "num_attention_heads": 4, "num_key_value_heads": 1, "tie_word_embeddings": True}
MODELS = {  # the format, the config, and which linears are not quantised: as the config says it, and which these are
    "qwen2-ct-int4-zeros": (CompressedTensors("pack-quantized", BF16, **INT4, strategy="group", group_size=64,
                                              symmetric=False), "Qwen2Config",
                            {**TINY, "intermediate_size": 192, "num_key_value_heads": 2}, ["lm_head"], r"lm_head"),
    "llama-ct-int4": (CompressedTensors("pack-quantized", BF16, **INT4, strategy="group", group_size=32), "LlamaConfig",
                      {**TINY, "vocab_size": 521, "intermediate_size": 96, "tie_word_embeddings": False}, [], r"$^"),
    "llama-ct-nvfp4": (NVFP4(), "LlamaConfig", {**TINY, "vocab_size": 521, "tie_word_embeddings": False}, ["lm_head"],
                       r"lm_head"),
    "llama-ct-mxfp4": (MXFP4(), "LlamaConfig", {**TINY, "vocab_size": 521, "tie_word_embeddings": False}, ["lm_head"],
                       r"lm_head"),
    "llama-ct-int8-mixed": (CompressedTensors("int-quantized", BF16, True, **INT8, strategy="channel"), "LlamaConfig",
                            {**TINY, "intermediate_size": 136, "mlp_bias": True}, ["lm_head", r"re:.*self_attn\..*"],
                            r"lm_head|.*self_attn\..*"),
    "llama-ct-int8-embedding": (CompressedTensors("int-quantized", BF16, targets=("Linear", "Embedding"), **INT8,
                                                  strategy="channel", symmetric=False), "LlamaConfig",
                                {**TINY, "num_hidden_layers": 1}, [], r"lm_head"),
    "gpt-neox-ct-int8": (CompressedTensors("pack-quantized", BF16, **INT8, strategy="group", group_size=32,
                                           symmetric=False), "GPTNeoXConfig",
                         {"vocab_size": 97, "hidden_size": 96, "intermediate_size": 128, "num_hidden_layers": 2,
                          "num_attention_heads": 3, "tie_word_embeddings": False}, ["embed_out"], r"lm_head"),
    "mistral3-ct-fp8": (CompressedTensors("float-quantized", BF16, True, **E4M3, strategy="channel"), "Mistral3Config",
                        {**TINY, "model_type": "mistral", "sliding_window": None, "head_dim": 32, "num_hidden_layers": 1,
                         "tie_word_embeddings": False},
                        ["re:.*lm_head", "re:.*vision_tower.*", "re:.*multi_modal_projector.*"],
                        r"lm_head|.*vision_tower.*|.*multi_modal_projector.*"),
    "llama-ct-fp8": (CompressedTensors("float-quantized", BF16, True, **E4M3, strategy="channel"), "LlamaConfig",
                     {**TINY, "tie_word_embeddings": False}, ["lm_head"], r"lm_head"),
    "phi3-ct-int4": (CompressedTensors("pack-quantized", F16, **INT4, strategy="group", group_size=128), "Phi3Config",
                     {**TINY, "intermediate_size": 128, "pad_token_id": 2}, ["lm_head"], r"lm_head"),
    "qwen2-gptq": (GPTQ(FORMAT.GPTQ, 4, 128, True), "Qwen2Config",
                   {**TINY, "intermediate_size": 288, "num_key_value_heads": 2}, [], r"lm_head"),
    "llama-gptq-zeros": (GPTQ(FORMAT.GPTQ, 4, 32, False), "LlamaConfig", {**TINY, "tie_word_embeddings": False}, [],
                         r"lm_head"),
    "llama-gptq-v2": (GPTQ(FORMAT.GPTQ_V2, 8, 64, False), "LlamaConfig", TINY, [], r"lm_head"),
    "qwen3-awq": (AWQ(64), "Qwen3Config", {**TINY, "head_dim": 32, "intermediate_size": 192}, ["lm_head"], r"lm_head"),
    "llama-fp8-blocks": (FP8([128, 128]), "LlamaConfig",
                         {**TINY, "num_hidden_layers": 1, "num_key_value_heads": 4, "intermediate_size": 256},
                         ["lm_head"], r"lm_head"),
    # Single layers have matrices that are not quantised.
    "llama-ct-int4-layers": (CompressedTensors("pack-quantized", BF16, **INT4, strategy="group", group_size=32),
                             "LlamaConfig", {**TINY, "num_hidden_layers": 4},
                             ["lm_head", "model.layers.1.mlp.down_proj", r"re:.*layers\.3\.self_attn\..*"],
                             r"lm_head|model\.layers\.1\.mlp\.down_proj|model\.layers\.3\.self_attn\..*"),
    "llama-fp8-layers": (FP8([128, 128]), "LlamaConfig",
                         {**TINY, "num_key_value_heads": 4, "intermediate_size": 256},
                         ["lm_head", "model.layers.0"], r"lm_head|model\.layers\.0\..*"),
}
POSITIONS = 32


def write_json(path, value):
    with open(path, "w", encoding="utf-8") as file:
        json.dump(value, file, indent=2, sort_keys=True, default=str)
        file.write("\n")


def fresh(*path):
    folder = os.path.join(FOLDER, *path)
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    return folder


def write_matrices(name):
    layout, shapes = MATRICES[name]
    folder, stored, read = fresh("matrices", name), {}, {}
    random = torch.Generator().manual_seed(len(name))
    for i, shape in enumerate(shapes):
        w = torch.randn(shape, generator=random) * shape[1] ** -0.5
        w[:, ::7] += 0.02  # zero points off the middle
        state = layout.store(w)
        read[f"m{i}.weight"] = layout.read(state).contiguous()
        stored.update((f"m{i}.{part}", tensor.contiguous()) for part, tensor in state.items())
    save_file(stored, os.path.join(folder, "model.safetensors"))
    save_file(read, os.path.join(folder, "dequantised.safetensors"))
    config, settings = {"model_type": "matrices"}, layout.config([])
    if getattr(layout, "old", False):
        write_json(os.path.join(folder, "quantize_config.json"), settings)
    else:
        config["quantization_config"] = settings
    write_json(os.path.join(folder, "config.json"), config)
    print(f"{name}: {', '.join(f'{key} {tuple(t.shape)} {t.dtype}' for key, t in stored.items())}")


def quantise(model, layout, plain, dtype):
    """The tensors of a model's checkpoint, and the SHA-256 of each matrix as the library reads it. The model has then
    the weights that the tensors mean, in float32."""
    stored, digests, tied = {}, {}, model.config.tie_word_embeddings
    for name, module in model.named_modules():
        targets = layout.scheme.targets if isinstance(layout, CompressedTensors) else ["Linear"]
        quantised = type(module).__name__ in targets and not re.fullmatch(plain, name)
        for part, p in module.named_parameters(recurse=False):
            if tied and name == "lm_head":
                continue
            if quantised and part == "weight":
                state = layout.store(p.data)
                stored.update((f"{name}.{key}", tensor.contiguous()) for key, tensor in state.items())
                read = layout.read(state).contiguous()
                digest = hashlib.sha256(read.view(torch.uint8).numpy().tobytes()).hexdigest()
                digests[f"{name}.weight"] = {"dtype": str(read.dtype).removeprefix("torch."), "sha256": digest}
                p.data = layout.read(state, torch.float32).float()
            else:
                p.data = p.data.to(dtype)
                saved = "embed_out" if name == "lm_head" and model.config.model_type == "gpt_neox" else name
                stored[f"{saved}.{part}"] = p.data
                p.data = p.data.float()
    return stored, digests


def write_model(name):
    layout, kind, fields, ignored, plain = MODELS[name]
    folder = fresh("models", name)
    dtype = layout.dtype if isinstance(layout, CompressedTensors) else BF16 if isinstance(layout, FP8) else F16
    for seed in range(100):
        config = generate.config_of(kind, {**fields, "dtype": str(dtype).removeprefix("torch.")})
        fields_of_config = config.to_dict()  # before the model below changes its dtype
        model = generate.auto_class(config).from_config(config, attn_implementation="eager", dtype=torch.float32)
        generate.set_weights(model.float(), seed)
        stored, digests = quantise(model, layout, plain, dtype)
        model.eval()
        ids = np.random.default_rng(seed).integers(0, fields["vocab_size"], POSITIONS).tolist()
        want = generate.logits(model, ids)
        text, margin = generate.greedy(model, ids[:generate.PROMPT], POSITIONS - generate.PROMPT)
        if margin >= generate.MARGIN and len(set(text)) >= generate.DISTINCT:
            break
        print(f"{name}: seed {seed} is passed over: margin {margin:.2g}, {len(set(text))} ids")
    else:
        raise RuntimeError(f"{name}: no seed will do")
    save_file(stored, os.path.join(folder, "model.safetensors"), {"format": "pt"})
    write_json(os.path.join(folder, "config.json"), {**fields_of_config, "quantization_config": layout.config(ignored)})
    write_json(os.path.join(folder, "dequantised.json"), digests)
    np.save(os.path.join(folder, "ref_input_ids.npy"), np.array(ids, np.int32))
    np.save(os.path.join(folder, "ref_logits_f32.npy"), want.astype(np.float32))
    np.save(os.path.join(folder, "ref_greedy_from8.npy"), np.array(text, np.int32))
    size = sum(os.path.getsize(os.path.join(folder, f)) for f in os.listdir(folder))
    print(f"{name}: seed {seed}, {size // 1024} KiB, {len(digests)} matrices, logits up to {np.abs(want).max():.2g}, "
          f"margin {margin:.2g}, {len(set(text))} ids")


def main():
    names = sys.argv[1:] or [*MATRICES, *MODELS]
    if unknown := [n for n in names if n not in MATRICES and n not in MODELS]:
        sys.exit(f"{', '.join(unknown)}: not known; there are {', '.join([*MATRICES, *MODELS])}")
    transformers.utils.logging.set_verbosity_error()
    torch.set_num_threads(1)
    for name in names:
        (write_matrices if name in MATRICES else write_model)(name)


if __name__ == "__main__":
    main()
