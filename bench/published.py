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
EACH = 350  # mutants of a class
ALL_REJECTED = ("capacity_overflow", "oob_buffer", "oob_counter")  # classes whose mutants are all unsafe, and rejected
LOWERINGS = "360 of 360"
PER_SECOND = "5,153"


# What has no figure that could be measured: the rest of both papers' tables and drawings.
NO_FIGURES = {
    AMK: {"Table 1": "a comparison of properties", "Table 2": "the list of checks", "Figure 1": "a drawing",
          "Figure 2": "a drawing"},
    LOOPING: {"Table 2": "the list of benchmarks", "Table 3": "data sheets", "Figure 2": "a drawing",
              "Figure 3": "a drawing", "Figure 6": "a definition", "Figure 7": "a definition"},
}
# What has tables of its own on the page; all other figures are in bench/figures.py.
TABLES = {AMK: ("Table 4", "Table 5"), LOOPING: ()}
