"""The figures that two papers have published and that docs/experiments.md answers one by one: what each is of, where it
stands, and what it says, as the paper writes it. Tables 4 and 5 of AutoMegaKernel are in bench/published.py.

Needs nothing, and knows nothing of amkc. Each has a key, by which bench/answers.py has what ours is, or why there is
none.
"""

from dataclasses import dataclass

from published import AMK, LOOPING

ACCOUNT = "account of "  # places in the account of E1 to E4, which stands beside the paper


@dataclass(frozen=True)
class Figure:
    key: str
    paper: str
    place: str
    what: str
    says: str


def of(paper, place, *figures):
    return tuple(Figure(key, paper, place, what, says) for key, what, says in figures)


ERRORS = of(AMK, "Table 3",
            ("toy-5090", "RTX 5090, toy of 2 layers, fp32: largest error of a logit", "3.58e-07"),
            ("llama3l-5090", "RTX 5090, Llama of 3 layers from a config, fp32", "4.17e-07"),
            ("smol-5090", "RTX 5090, SmolLM2-135M, fp32", "3.81e-05"),
            ("greedy-5090", "RTX 5090, toy, 32 greedy tokens", "as eager"),
            ("decode-a100", "A100, decode of 2 layers, fp32", "2.98e-07"),
            ("greedy-a100", "A100, SmolLM2-135M, 8 greedy tokens, fp32", "as eager"),
            ("decode-h100", "H100, decode of 2 layers, fp32", "2.38e-07"),
            ("bf16-h100", "H100, shape of Llama-3.2-1B, 16 layers, 3,202 tasks, bf16", "3.12e-02"),
            ("greedy-h100", "H100, SmolLM2-135M, 8 greedy tokens, fp32", "as eager")) + of(
    AMK, "Section 5, errors",
    ("decode-both", "A100 and H100, decode, against eager and against the CPU", "at most 3.2e-07"),
    ("int8-gate", "int8 against cuBLAS, random weights: largest error of a logit, and the best token",
     "at most 0.03; as eager"),
    ("int8-reference", "int8 on the GPU against its reference", "equal"),
    ("int4-reference", "int4 on the GPU against its reference", "about 1e-6")) + of(
    AMK, ACCOUNT + "E1", ("gpu-reference", "the GPU against the reference VM, fp32", "about 1e-7")) + of(
    AMK, ACCOUNT + "E4, errors",
    ("pinned-fp32", "A100 and H100, small and shape of Llama-3.2-1B, fp32: largest error", "6.6e-07"),
    ("pinned-bf16", "the same in bf16", "3.2e-02"))

QUALITY = of(AMK, "Section 5, quality",
             ("perplexity", "perplexity over 187 tokens, SmolLM2-135M, fp32: the kernel's, and eager PyTorch's",
              "14.948473, 14.948473"),
             ("perplexity-gap", "the gap between them", "2.45e-07"),
             ("long-greedy", "64 greedy tokens against model.generate", "64 of 64")) + of(
    AMK, ACCOUNT + "E2, the anchor",
    ("anchor", "accepted lowerings whose logits equal eager PyTorch's, in the reference VM", "24 of 24, bit for bit"))

REJECTIONS = of(AMK, ACCOUNT + "E2, rejections",
                *((f"rejected-{key}", f"of 6,783 rejections: {what}", says) for key, what, says in (
                    ("cycle", "a cycle", "4,775"), ("race", "a race", "1,187"),
                    ("unsatisfiable", "a wait that nothing satisfies", "411"),
                    ("reference", "a buffer or counter that is missing", "350"),
                    ("capacity", "more than the ABI has room for", "58"),
                    ("arity", "operands or parameters of an op", "2")))) + of(
    AMK, ACCOUNT + "E2, false rejects",
    ("strict-race", "of 692 rejections of what an oracle calls safe: a race", "531"),
    ("strict-cycle", "of 692 rejections of what an oracle calls safe: a cycle", "161")) + of(
    AMK, ACCOUNT + "E2, rate", ("wall", "validate over all 7,160 schedules", "1.39 s"))

SEARCH = of(AMK, ACCOUNT + "E3, Section 5",
            ("search-valid", "candidates that are valid, 60 for each of 3 models", "180 of 180"),
            ("search-kept", "configurations kept of 60, each model; all of them valid", "5, 5, 5"),
            ("search-proved", "best configurations that validate takes when they are lowered again", "3 of 3"),
            ("search-faults", "corrupted candidates of 60 that are rejected", "20 of 20"),
            ("faults-wait", "of these: a wait on the task's own counter", "6"),
            ("faults-buffer", "of these: a read of a missing buffer", "7"),
            ("faults-counter", "of these: a wait on a missing counter", "7"),
            ("search-toy", "predicted gain, toy of 1 layer", "24.11 to 24.06 µs, 1.002×"),
            ("search-125m", "predicted gain, shape of 125M, 2 layers", "50.83 to 46.16 µs, 1.101×"),
            ("search-1b", "predicted gain, shape of 1B, 4 layers", "135.12 to 105.87 µs, 1.276×"),
            ("search-geomean", "geometric mean of the predicted gains", "1.121×"),
            ("search-measured", "measured gain of the toy's best; standard deviations of both",
             "259.73 to 269.84 µs, 0.963×; 72.27, 97.31 µs"),
            ("search-error", "error of the toy's default and best against eager, on the GPU", "3.58e-07, 3.58e-07"),
            ("search-trials", "trials up to the final best, each model", "8"),
            ("search-best", "the best, the same for all three models", "tiles of 64 for 256, rmsnorm fused with gemv, "
             "round_robin for load_balance, no paging for graph_color, 128 threads for 256, 16,384 bytes of shared "
             "memory for 0")) + of(
    AMK, "Figure 4",
    ("cold", "search on hardware, cold, 622.9 MB, RTX 5090", "2168 to 1261 µs, 1.72×, at iteration 2"),
    ("agent", "search by an agent, 12 experiments, 6 kept: N_tile 32, cols_per_warp 4, 512 threads",
     "2514 to 1991 µs, 1.25×"),
    ("warm", "a warm campaign's start over a cold one's", "1.41×")) + of(
    AMK, "Section 5, guards of the search",
    ("single-shot", "gain of the agent's best by single shots, round by round, about a median of 1.25×",
     "1.08 to 1.39×"),
    ("floor-guard", "a latency below the roofline's floor that was withheld, and the floor", "87.6 µs, 695 µs")) + of(
    AMK, "Section 5, ten minutes",
    ("ten-minutes", "ten minutes of search, 537 trials, 19 kept, RTX 5090", "1805 to 1225 µs, 1.47×"),
    ("ten-graph", "its best beside eager in a CUDA graph, about 1070 µs; p10 and p90 over three repeats",
     "0.88×; 0.82, 0.93"),
    ("ten-eager", "its best beside eager, launched one by one", "3.6×")) + of(
    AMK, "Figure 5",
    ("l4-3b", "search on an L4, int8, 3.5B, 36 of 36 configurations correct", "to 1.28×, p10 1.26×"),
    ("l4-2b", "search on an L4, int8, 2.7B", "0.97× to 1.19×")) + of(
    AMK, "Section 5, int8",
    ("parity", "time until the search on an L4 is past cuBLAS, 2.7B", "about 50 s"),
    ("int8-config", "what the search finds for int8, RTX 5090; with qc 4, the default, it stays behind cuBLAS",
     "qc 2, N_tile 16, 512 threads"))

ROOFLINE = of(AMK, "Table 7",
              *((f"a100-{key}", f"A100, clocks held high, {what}", says) for key, what, says in (
                  ("small-fp32", "small (4 layers, hidden 2048), fp32", "6524.9 µs, 190.9 GB/s, 12.3 %, 13.8 %"),
                  ("small-bf16", "small, bf16", "3596.3 µs, 173.2 GB/s, 11.1 %, 12.5 %"),
                  ("b1-fp32", "shape of Llama-3.2-1B, fp32", "27264.0 µs, 219.8 GB/s, 14.1 %, 15.9 %"),
                  ("b1-bf16", "shape of Llama-3.2-1B, bf16", "12247.0 µs, 244.7 GB/s, 15.7 %, 17.7 %"))),
              *((f"h100-{key}", f"H100, clocks held high, {what}", says) for key, what, says in (
                  ("small-fp32", "small, fp32", "6416.7 µs, 194.1 GB/s, 5.8 %, 6.3 %"),
                  ("small-bf16", "small, bf16", "4232.8 µs, 147.2 GB/s, 4.4 %, 4.8 %"),
                  ("b1-fp32", "shape of Llama-3.2-1B, fp32", "22437.5 µs, 267.1 GB/s, 8.0 %, 8.6 %"),
                  ("b1-bf16", "shape of Llama-3.2-1B, bf16", "12322.6 µs, 243.2 GB/s, 7.3 %, 7.9 %")))) + of(
    AMK, ACCOUNT + "E4, spreads of Table 7",
    *((f"spread-{gpu.lower()}-{key}", f"{gpu}, {what}: p10, p90, standard deviation", says)
      for gpu, key, what, says in (
          ("A100", "small-fp32", "small, fp32", "6116, 10325, 2715 µs"),
          ("A100", "small-bf16", "small, bf16", "3436, 5456, 1336 µs"),
          ("A100", "b1-fp32", "shape of Llama-3.2-1B, fp32", "26954, 31391, 2207 µs"),
          ("A100", "b1-bf16", "shape of Llama-3.2-1B, bf16", "11824, 15141, 3846 µs"),
          ("H100", "small-fp32", "small, fp32", "5873, 16674, 6028 µs"),
          ("H100", "small-bf16", "small, bf16", "3916, 12173, 3695 µs"),
          ("H100", "b1-fp32", "shape of Llama-3.2-1B, fp32", "21979, 31084, 5898 µs"),
          ("H100", "b1-bf16", "shape of Llama-3.2-1B, bf16", "11501, 20594, 4717 µs")))) + of(
    AMK, "Table 8",
    ("8-5090-1024h", "RTX 5090, 4 layers, hidden 1024, fp32", "402 tasks, 221.3 MB, 1.94 ms, 12.7 %"),
    ("8-5090-8l", "RTX 5090, 8 layers, hidden 2048, fp32", "1314 tasks, 983.6 MB, 5.35 ms, 20.5 %"),
    ("8-5090-4l", "RTX 5090, 4 layers, hidden 2048, fp32", "690 tasks, 622.9 MB, 2.97 ms, 23.4 %"),
    ("8-a100-fp32", "A100, 4 layers, hidden 2048, fp32", "690 tasks, 1245.8 MB, 6.13 ms, 13.1 %"),
    ("8-a100-bf16", "A100, 4 layers, hidden 2048, bf16", "690 tasks, 622.9 MB, 3.41 ms, 11.8 %"),
    ("8-a100-1b", "A100, shape of Llama-3.2-1B, bf16", "3202 tasks, 2997.0 MB, 11.86 ms, 16.2 %"),
    ("8-a100-smol", "A100, SmolLM2-135M, fp32", "1716 tasks, 538.1 MB, 15.59 ms, 2.2 %"),
    ("8-h100-fp32", "H100, 4 layers, hidden 2048, fp32", "690 tasks, 1245.8 MB, 6.18 ms, 6.0 %"),
    ("8-h100-1b", "H100, shape of Llama-3.2-1B, bf16", "3202 tasks, 2997.0 MB, 11.71 ms, 7.6 %"),
    ("8-h100-smol", "H100, SmolLM2-135M, fp32", "1716 tasks, 538.1 MB, 14.30 ms, 1.1 %")) + of(
    AMK, "Figure 3",
    ("tuned", "tuned GEMV, 622.9 MB, RTX 5090", "460 GB/s, 63 % of the measured peak, 51 % of the data sheet's"),
    ("cublas", "cuBLAS in a CUDA graph, the same weights", "661 GB/s, 90 %")) + of(
    AMK, "Section 5, peaks",
    ("peak-5090", "peak of a copy, RTX 5090", "731 GB/s of 896"),
    ("peak-a100", "peak of a copy, A100", "1383 GB/s of 1555"),
    ("peak-h100", "peak of a copy, H100", "3089 GB/s of 3350"),
    ("tuned-autotune", "best point that the search found, 622.9 MB, RTX 5090",
     "352.4 GB/s, 48 %, 39.3 % of the data sheet's")) + of(
    AMK, ACCOUNT + "E4",
    ("clocks", "clocks during the measurement: A100, H100", "1410 MHz, 1980 MHz, their highest; not locked"),
    ("idle", "clocks of the earlier runs, read beside them: A100, H100", "735 MHz, 345 MHz: idle"),
    ("power", "power after the run, and idle: A100, H100", "116 W, 60 W; 159 W, 74 W"),
    ("unpinned", "how far the share of the peak is from that of the earlier runs, whose clocks were read when idle",
     "0.8 points at most"),
    ("spread-earlier", "A100, SmolLM2-135M, clocks not held: standard deviation (Section 5)", "4.5 ms of 15.6 ms"))

PRECISION = of(AMK, "Table 6",
               ("6-bf16", "RTX 5090, small, bf16: a token, and the kernel alone", "1537.4 µs, 1324.1 µs"),
               ("6-int8", "the same in int8", "1371.2 µs, 1126.6 µs: 1.12×, 1.18×"),
               ("6-int4", "the same in int4", "1450.6 µs, 1207.3 µs: 1.06×, 1.10×"),
               ("6-int8-quality", "greedy tokens of int8 that are those of fp16, SmolLM2-135M", "32 of 32"),
               ("6-int4-quality", "greedy tokens of int4 that are those of fp16, SmolLM2-135M", "22 %"),
               ("6-floor", "weights that a token streams in bf16, over those in int4", "2.42×")) + of(
    AMK, "Table 10",
    *((f"10-{key}", f"int8 against cuBLAS in bf16 in a CUDA graph, median and p10: {what}", says)
      for key, what, says in (
          ("l4-1b", "L4, 1.3B", "1.18×, 1.13×"), ("l4-2b", "L4, 2.7B", "1.25×, 1.17×"),
          ("l4-3b", "L4, 3.5B", "1.32×, 1.29×"), ("l4-4b", "L4, 4B", "1.33×, 1.31×"),
          ("l40s-4b", "L40S, 4B", "1.25×, 1.22×"), ("l40s-7b", "L40S, 6.7B", "1.27×, 1.25×"),
          ("a10g-2b", "A10G, 2.7B", "1.00×, 0.97×"), ("a10g-3b", "A10G, 3.5B", "1.04×, 1.01×"),
          ("a10g-4b", "A10G, 4B", "1.08×, 1.05×"), ("5090-4l", "RTX 5090, 4 layers, 623 MB", "1.19×, 1.04×"),
          ("5090-8l", "RTX 5090, 8 layers, 984 MB", "1.23×, 1.20×")))) + of(
    AMK, "Section 6, A100 and H100",
    ("10-a100-1b", "int8 against cuBLAS in bf16: A100, 1.3B", "0.79×"),
    ("10-a100-13b", "int8 against cuBLAS in bf16: A100, 13B", "0.55×"),
    ("10-h100-1b", "int8 against cuBLAS in bf16: H100, 1.3B", "0.72×"),
    ("10-h100-13b", "int8 against cuBLAS in bf16: H100, 13B", "0.60×"),
    ("10-t4", "int8 against cuBLAS: T4, 1.3B and 2.7B", "0.97×, 0.95×"),
    ("10-ring", "an asynchronous ring for int8, beside none: A100, L4", "0.82×, 0.87×"),
    ("10-int4-l4", "int4 against cuBLAS in bf16, L4", "0.18×")) + of(
    AMK, "Section 5, bytes of int8",
    ("10-bytes", "weights that a token streams in int8, over those in bf16", "0.61×")) + of(
    AMK, ACCOUNT + "E1 to E4, limitations",
    ("10-5090-16l", "int8 against cuBLAS in bf16 in a CUDA graph: RTX 5090, 4, 8 and 16 layers", "1.19 to 1.23×"),
    ("10-t4-p10", "int8 against cuBLAS: T4, 1.3B, median and p10", "0.966×, 0.683×"),
    ("10-l40s-13b", "int8 against cuBLAS: L40S, 13B; T4, 3.5B", "out of memory; no correct configuration"),
    ("10-a10g-1b", "int8 against cuBLAS in bf16: A10G, 1.3B", "0.917×"),
    ("10-position", "int8 against cuBLAS, L4, 2.7B: at position 0, and at 2,048", "1.261×, 0.102×")) + of(
    AMK, "Figure 6",
    ("fig6-bf16", "bf16 against cuBLAS in bf16 in a CUDA graph, RTX 5090, every depth", "0.76 to 0.88×"),
    ("fig6-int8", "int8 against the same", "1.19 to 1.23×"))

BASELINES = of(AMK, "Table 11",
               ("11-eager", "RTX 5090, small: a token, and eager PyTorch launched one by one",
                "1.23 ms, 4.44 ms: 3.6× faster"),
               ("11-graph", "RTX 5090, small: a token, and eager in a CUDA graph", "1.23 ms, 1.08 ms: 1.13× slower"),
               ("11-vllm", "H100, SmolLM2-135M, fp32: a token, and vLLM in CUDA graphs",
                "14.30 ms, 8.65 ms: 1.65× slower"),
               ("11-vllm-eager", "H100, SmolLM2-135M, fp32: a token, and vLLM without",
                "14.30 ms, 13.51 ms: 1.06× slower"),
               ("11-vllm-a100", "A100, SmolLM2-135M, fp32: a token, and vLLM without",
                "15.59 ms, 32.06 ms: 2.06× faster")) + of(
    AMK, ACCOUNT + "E1 to E4, speed",
    ("behind-graph", "an earlier kernel, RTX 5090: its time over that of eager in a CUDA graph", "3.58×")) + of(
    AMK, "Table 9",
    ("9-coalescing", "coalesced loads of weights, over scalar ones", "4.65 to 1.97 ms, 2.36×"),
    ("9-coalescing-kernel", "the same, the kernel alone", "4.17 to 1.68 ms, 2.48×"),
    ("9-tables", "tables that stay on the device, over building them per launch", "5.35 to 1.94 ms, 2.75×"),
    ("9-balance", "tasks spread by load, over round robin", "1.99 to 2.39 ms, 0.83×"),
    ("9-pipelining", "a prefetch of depth 2, over none", "1.91 to 1.96 ms, 0.98×")) + of(
    AMK, "Section 6, A100 and H100", ("split-kv", "attention split over the context, over none", "slower; no number"))

INTENSITY = of(LOOPING, "Table 1", *(
    (f"t1-{model}-{batch}-{context}", f"{name}, bf16, batch {batch}, context {context:,}: GB of parameters, GB of "
     "cache, GFLOPs, GB a token, FLOPs a byte", says) for model, name, batch, context, says in (
        ("8b", "Llama 3.1 8B", 1, 4096, "14.9, 0.5, 20, 15.4, 1.3"),
        ("8b", "Llama 3.1 8B", 1, 65536, "14.9, 8, 50, 22.9, 2.2"),
        ("8b", "Llama 3.1 8B", 32, 4096, "14.9, 16, 640, 30.9, 20.7"),
        ("8b", "Llama 3.1 8B", 32, 65536, "14.9, 256, 1600, 270.9, 5.9"),
        ("70b", "Llama 3.1 70B", 1, 4096, "130.4, 1.25, 150, 131.6, 1.1"),
        ("70b", "Llama 3.1 70B", 1, 65536, "130.4, 20, 310, 150.4, 2.1"),
        ("70b", "Llama 3.1 70B", 32, 4096, "130.4, 40, 4800, 170.4, 28.2"),
        ("70b", "Llama 3.1 70B", 32, 65536, "130.4, 640, 9920, 770.4, 12.9"),
        ("405b", "Llama 3.1 405B", 1, 4096, "754.4, 1.96, 840, 756.3, 1.1"),
        ("405b", "Llama 3.1 405B", 1, 65536, "754.4, 31.5, 1340, 785.9, 1.7"),
        ("405b", "Llama 3.1 405B", 32, 4096, "754.4, 62.7, 26880, 817.1, 32.9"),
        ("405b", "Llama 3.1 405B", 32, 65536, "754.4, 1008, 42880, 1762.4, 24.3"))),
    ("t1-bound", "which of these twelve are bound by memory on a DGX H100", "all"))

KERNEL_LOOPING = of(LOOPING, "Figure 1",
                    ("1-h100", "8B, TensorRT-LLM on 8 H100: tokens in a second, and share of the peak",
                     "over 300; 21 %"),
                    ("1-fewer", "8B, TensorRT-LLM on 2 and on 4 H100", "bars without numbers"),
                    ("1-sn40l", "8B, looped, 8 and 16 sockets of SN40L: share of the peak", "78 %, 76 %")) + of(
    LOOPING, "Figure 4",
    ("4", "8B: where the time of a token goes on 2, 4 and 8 H100", "bars without numbers")) + of(
    LOOPING, "Figure 5",
    ("5-before", "8B, a launch per layer: share of the time that is synchronisation", "over 30 %"),
    ("5-after", "how much less synchronisation is when looped", "almost 8×")) + of(
    LOOPING, "Figure 8",
    ("8-geomean", "looped against not, 16 sockets, all models: geometric mean", "1.6×"),
    ("8-most", "the most, and Qwen2.5-72B at large batches", "2.2×, close to 2×")) + of(
    LOOPING, "Figure 9",
    ("9", "looped on 16 sockets against not on 8, geometric mean", "2.5×"),
    ("9-eight", "looped on 8 sockets against not on 8", "bars without numbers"),
    ("9-sixteen", "not looped on 16 sockets against not on 8", "slower; bars without numbers")) + of(
    LOOPING, "Figure 10", ("10", "SN40L looped against 8 H100: 8B, and the most", "2×, 3.7×")) + of(
    LOOPING, "Figure 11",
    ("11-h100", "share of the peak, 8 H100", "21 %"),
    ("11-sn40l", "share of the peak, SN40L looped; Llama 3.1 70B", "over 70 %; 93 %")) + of(
    LOOPING, "Abstract", ("over-90", "share of the peak on 8 and 16 sockets of SN40L", "over 90 %")) + of(
    LOOPING, "Sections 1 and 2",
    ("under-25", "share of the peak, 8B on 8 H100", "under 25 %"),
    ("kernels", "kernels that are launched for a decoder: TensorRT-LLM on H100, SN40L", "10, 1")) + of(
    LOOPING, "Figure 12", ("12", "8B: bandwidth over time, looped and not",
                           "curves: drops after every layer, and none"))

GROUPS = {"errors": ERRORS, "quality": QUALITY, "rejections": REJECTIONS, "search": SEARCH, "roofline": ROOFLINE,
          "precision": PRECISION, "baselines": BASELINES, "intensity": INTENSITY, "looping": KERNEL_LOOPING}


def figures():
    return [f for group in GROUPS.values() for f in group]
