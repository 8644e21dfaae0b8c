#!/usr/bin/env python3
"""Runs a published checkpoint, SmolLM2-135M-Instruct as a GGUF file in Q4_1, on the reference VM in float32: the tokens
of a conversation, and the 32 that follow it, are those that transformers has. Called by `make stored-tokens`, which
.ci/run does; `make real` compares with transformers itself.
"""

import json
import os
import subprocess
import sys
import tempfile

AMKC = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "amkc")
MESSAGES = [{"role": "system", "content": "You answer in one sentence."},
            {"role": "user", "content": "What is the capital of France?"},
            {"role": "assistant", "content": "It is Paris."}, {"role": "user", "content": "Tell me about its river."}]
PROMPT = [1, 9690, 198, 2683, 2988, 281, 582, 6330, 30, 2, 198, 1, 4093, 198, 1780, 314, 260, 3575, 282, 4649, 47, 2,
          198, 1, 520, 9531, 198, 1589, 314, 7042, 30, 2, 198, 1, 4093, 198, 31530, 549, 563, 624, 4626, 30, 2, 198, 1,
          520, 9531, 198]
NEXT = [504, 3575, 282, 4649, 314, 7042, 30, 2, 198, 1, 4093, 198, 1780, 314, 260, 3575, 282, 4649, 47, 2, 198, 1, 520,
        9531, 198, 504, 3575, 282, 4649, 314, 7042, 30]


def main():
    with tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8") as file:
        json.dump(MESSAGES, file)
        file.flush()
        args = ["--device", "ref", "--dtype", "fp32", "--max-tokens", str(len(NEXT)), "--ignore-eos", "--json"]
        done = subprocess.run([AMKC, "run", sys.argv[1], "--messages", file.name, *args], capture_output=True,
                              text=True)
    if done.returncode != 0:
        sys.exit(done.stderr or done.stdout)
    got = json.loads(done.stdout)
    for what, want in (("prompt_ids", PROMPT), ("ids", NEXT)):
        if got[what] != want:
            sys.exit(f"stored_tokens.py: {what} are {got[what]}; want {want}")
    print(f"{len(PROMPT)} tokens of a conversation and the {len(NEXT)} after it are those stored")


main()
