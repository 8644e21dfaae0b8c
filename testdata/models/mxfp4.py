#!/usr/bin/env python3
"""Makes testdata/models/quantised/mxfp4: every element of MXFP4 with every scale, and what transformers makes of them.

    python3 testdata/models/mxfp4.py

Needs torch and transformers; no test runs it. model.safetensors has m_blocks and m_scales, a row for each scale that is
a number, and dequantised.safetensors has m as bfloat16.
"""

import json
import os

import torch
from safetensors.torch import save_file
from transformers.integrations.mxfp4 import convert_moe_packed_tensors

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "quantised", "mxfp4")


def main():
    os.makedirs(FOLDER, exist_ok=True)
    code = torch.arange(16, dtype=torch.uint8)
    pairs = torch.cat([code + 16 * code.flip(0), code.flip(0) + 16 * code]).reshape(1, 1, 2, 16)
    scales = torch.arange(255, dtype=torch.uint8).reshape(1, 255, 1).expand(1, 255, 2).contiguous()
    blocks = pairs.expand(1, 255, 2, 16).contiguous()
    save_file({"m_blocks": blocks, "m_scales": scales}, os.path.join(FOLDER, "model.safetensors"))
    want = convert_moe_packed_tensors(blocks, scales)[0].transpose(0, 1).contiguous()
    save_file({"m": want}, os.path.join(FOLDER, "dequantised.safetensors"))
    with open(os.path.join(FOLDER, "config.json"), "w", encoding="utf-8") as file:
        json.dump({"quantization_config": {"quant_method": "mxfp4"}}, file)
        file.write("\n")


if __name__ == "__main__":
    main()
