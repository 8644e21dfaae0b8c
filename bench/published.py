"""The figures that two papers have published, with their places: what docs/experiments.md puts ours beside.

AMK is "AutoMegaKernel" with the account of its experiments E1 to E4, LOOPING is "Kernel Looping". Needs nothing, and
knows nothing of amkc. A figure is written as the paper writes it.
"""

from dataclasses import dataclass

AMK = "AutoMegaKernel"
LOOPING = "Kernel Looping"


@dataclass(frozen=True)
class Covered:
    """A model of E1: what is published of it, and its shape, from which ours is made."""

    name: str
    source: str
    parameters: str  # millions
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    tasks: int
    buffers: int
    counters: int
    error: str  # largest absolute error of a logit, fp32
    generate: str  # its greedy tokens against model.generate
    intermediate: int
    vocab: int
    tied: bool = False


# Table 4, and the table of all models in the account of E1. Sizes of the MLP and of the vocabulary are not in it: they
# are those of the published checkpoints, and of the others what the numbers of parameters leave no choice about.
COVERAGE = (
    Covered("SmolLM2-135M", "checkpoint", "134.52", 30, 576, 9, 3, 1716, 848, 573, "3.91e-05", "yes", 1536, 49152,
            True),
    Covered("SmolLM2-360M", "checkpoint", "361.82", 32, 960, 15, 5, 2690, 904, 611, "2.50e-05", "yes", 2560, 49152,
            True),
    Covered("TinyLlama-1.1B-Chat", "checkpoint", "1100.05", 22, 2048, 32, 4, 3410, 625, 421, "1.34e-05", "yes", 5632,
            32000),
    Covered("Llama h512 L2", "from config", "40.37", 2, 512, 8, 2, 182, 65, 41, "1.82e-06", "yes", 2048, 32000),
    Covered("Llama h512 L8", "from config", "63.19", 8, 512, 8, 2, 530, 233, 155, "1.71e-06", "yes", 2048, 32000),
    Covered("Llama h1024 L4", "from config", "126.36", 4, 1024, 16, 4, 482, 121, 79, "2.68e-06", "yes", 4096, 32000),
    Covered("Llama h1024 L8", "from config", "187.19", 8, 1024, 16, 4, 898, 233, 155, "3.10e-06", "yes", 4096, 32000),
    Covered("Llama h2048 L4", "from config", "374.36", 4, 2048, 32, 8, 850, 121, 79, "7.03e-06", "yes", 8192, 32000),
    Covered("Llama h2048 L8", "from config", "617.65", 8, 2048, 32, 8, 1634, 233, 155, "8.58e-06", "yes", 8192, 32000),
    Covered("ToyLlama L2", "toy", "0.11", 2, 64, 4, 2, 42, 65, 41, "3.58e-07", "n/a", 128, 256),
)
GREEDY_PUBLISHED = "16"  # tokens compared for each model of E1


@dataclass(frozen=True)
class Variant:
    """A variant that E1 wants refused: what became of it there, and the model of ours that has the same feature."""

    name: str
    outcome: str
    ours: str


REFUSALS = (
    Variant("Llama with attention_bias", "refused at import", "llama-attention-bias"),
    Variant("Llama with rope_scaling linear", "refused at import", "llama-rope-linear"),
    Variant("Llama with hidden_act gelu", "refused at import", "llama-gelu"),
    Variant("Qwen2 with q/k/v biases", "accepted in silence, logits off by 2.47; refused since, says the account",
            "qwen2-bias"),
)


@dataclass(frozen=True)
class Unsafe:
    """A class of mutants of E2, 350 each: how many an oracle called unsafe, how many of these were rejected, how many
    accepted; and how many were rejected that the oracle called safe."""

    name: str
    unsafe: int
    rejected: int
    false_accepts: int
    strict: int


# Table 5, and "Per class" and "The false-reject cell" in the account of E2.
UNSAFE = (
    Unsafe("cycle", 342, 342, 0, 8), Unsafe("partial_shared", 0, 0, 0, 350), Unsafe("drop_wait", 331, 331, 0, 2),
    Unsafe("kv_before_append", 171, 171, 0, 179), Unsafe("self_wait", 197, 197, 0, 153),
    Unsafe("oob_counter", 350, 350, 0, 0), Unsafe("oob_buffer", 350, 350, 0, 0),
    Unsafe("capacity_overflow", 350, 350, 0, 0),
)
# The confusion matrix: (accepted and safe, accepted and unsafe, rejected and safe, rejected and unsafe).
CONFUSION = (377, 0, 692, 6091)
SCHEDULES = 7160
LOWERINGS = "360 of 360"
PER_SECOND = "5,153"


@dataclass(frozen=True)
class NotYet:
    """Published figures that no row of ours answers: where they are, what they say, and the item of the issue."""

    paper: str
    place: str
    says: str
    item: str


NOT_YET = (
    NotYet(AMK, "Table 3", "errors of logits on RTX 5090, A100 and H100, 2.38e-07 to 3.12e-02, and greedy tokens",
           "1, on GPUs"),
    NotYet(AMK, "Section 5, quality", "perplexity of SmolLM2-135M over 187 tokens 14.948473, 2.45e-07 from eager", "1"),
    NotYet(AMK, "E2, the anchor", "24 of 24 accepted lowerings equal eager PyTorch bit for bit in the reference VM",
           "2"),
    NotYet(AMK, "E3, Section 5", "180 of 180 candidates valid, predicted gains 1.002, 1.101 and 1.276, geomean 1.121; "
           "20 of 60 injected faults, all rejected", "3"),
    NotYet(AMK, "Figure 4", "search on hardware: 2,168 to 1,261 µs cold (1.72×), 2,514 to 1,991 µs by an agent (1.25×)",
           "3"),
    NotYet(AMK, "Section 5, ten minutes", "537 trials, 1,805 to 1,225 µs (1.47×), 0.88× of eager in a CUDA graph", "3"),
    NotYet(AMK, "Table 7", "fractions of the measured peak at full clocks: A100 12.5 to 17.7 %, H100 4.8 to 8.6 %",
           "4"),
    NotYet(AMK, "Table 8", "fractions of the data sheet's bandwidth: 1.1 to 23.4 %", "4"),
    NotYet(AMK, "Figure 3", "460 of 731 GB/s (63 %) on an RTX 5090, cuBLAS 661", "4"),
    NotYet(AMK, "Section 5, peaks", "measured peaks of 731, 1,383 and 3,089 GB/s", "4"),
    NotYet(AMK, "Table 6", "int8 1.12×, int4 1.06× of bf16 per token; 22 % of tokens alike in int4", "5"),
    NotYet(AMK, "Table 9", "ablations: coalescing 2.36×, resident tables 2.75×, balance 0.83×, pipelining 0.98×", "5"),
    NotYet(AMK, "Table 10", "int8 against cuBLAS bf16: L4 1.18 to 1.33×, L40S 1.25 to 1.27×, A10G 1.00 to 1.08×, "
           "RTX 5090 1.19 to 1.23×", "5"),
    NotYet(AMK, "Figure 5", "the search on an L4, 0.97 to 1.19× at 2.7B and 1.28× at 3.5B", "5"),
    NotYet(AMK, "Figure 6", "bf16 0.76 to 0.88× of cuBLAS, int8 1.19 to 1.23×", "5"),
    NotYet(AMK, "Section 6, A100 and H100", "int8 against cuBLAS: A100 0.79 to 0.55×, H100 0.72 to 0.60×", "5"),
    NotYet(AMK, "Table 11", "1.23 ms against 4.44 eager and 1.08 in a CUDA graph; vLLM 1.65× as fast on an H100", "5"),
    NotYet(LOOPING, "Table 1", "operations, bytes and intensity of a token of Llama 3.1", "6"),
    NotYet(LOOPING, "Figure 1", "speed and share of the peak of 2, 4 and 8 H100 with TensorRT-LLM", "6"),
    NotYet(LOOPING, "Figure 4", "where the time of a token goes on 2, 4 and 8 H100", "6"),
    NotYet(LOOPING, "Figure 5", "where it goes on an SN40L: over 30 % in synchronisation, almost 8 times less looped",
           "6"),
    NotYet(LOOPING, "Figure 8", "looped against not, geomean 1.6×", "6"),
    NotYet(LOOPING, "Figure 9", "scaling from 8 to 16 sockets, geomean 2.5×", "6"),
    NotYet(LOOPING, "Figure 10", "against 8 H100", "6"),
    NotYet(LOOPING, "Figure 11", "share of peak: 21 % on 8 H100; over 70 %, up to 93 %, on SN40L", "6"),
    NotYet(LOOPING, "Figure 12", "bandwidth over time", "6"),
)

# What has no figure that could be measured: the rest of both papers' tables and drawings.
NO_FIGURES = {
    AMK: {"Table 1": "a comparison of properties", "Table 2": "the list of checks", "Figure 1": "a drawing",
          "Figure 2": "a drawing"},
    LOOPING: {"Table 2": "the list of benchmarks", "Table 3": "data sheets", "Figure 2": "a drawing",
              "Figure 3": "a drawing", "Figure 6": "a definition", "Figure 7": "a definition"},
}
ANSWERED = {AMK: ("Table 4", "Table 5"), LOOPING: ()}
