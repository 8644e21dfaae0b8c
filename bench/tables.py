"""The tables of docs/results/GPU.md, one declaration each: a title, what the rows show and must satisfy, and columns.

A column is a title and a format string whose fields are those of a row of GPU.json; report.py fills it in.
"""

from typing import NamedTuple


class Table(NamedTuple):
    title: str
    about: str
    columns: dict


ACCURACY = {
    "max error": "{max_error:.2e}",
    "RMS error": "{rms_error:.2e}",
    "max ÷ transformers'": "{max_ratio:.3f}",
    "RMS ÷ transformers'": "{rms_ratio:.3f}",
    "argmax wrong, of decided": "{argmax_wrong} of {argmax_decided}",
    "positions": "{positions}",
}
CRITERIA = (
    "Logits of all positions, teacher-forced, against transformers in fp32 on the same GPU: eager attention, no TF32, "
    "one pass, the same weights. fp32: the max error is at most 1e-4, or 1.5 × that of transformers' fp32 against its "
    "float64 where that is more, and the argmax is the same everywhere. bf16 and fp16: the RMS error is at most 1.0 × "
    "and the max error at most 1.5 × that of transformers' own run in that type, and the argmax is the same wherever "
    "it is decided: where the fp32 margin exceeds 2 × the max error of transformers' own run.")
LATENCY = {
    "position": "{position}",
    "µs per token": "{latency_us[median]:.1f}",
    "p10 to p90": "{latency_us[p10]:.1f} to {latency_us[p90]:.1f}",
    "ceiling, µs": "{ceiling_us[median]:.1f}",
    "share of ceiling": "{share_of_ceiling:.1%}",
    "GB/s": "{gbs:.0f}",
    "plain read, GB/s": "{read_gbs:.0f}",
}
ENGINES = {"ops": "no graph", "eager": "CUDA graph", "compile": "torch.compile", "products": "products alone"}
DRAWN = {"top-k and top-p": "top-k 50 and top-p 0.95", "min-p": "min-p 0.05", "a bias": "a bias", "a mask": "a mask",
         "penalties": "penalties of repetition, presence and frequency"}
SERVED = {"engine": "engine", "server": "server", "server_clients": "several clients"}

# In the order of the JSON files and of their pages.
TABLES = {
    "fixtures": Table("Trained and tiny checkpoints", CRITERIA + " In fp32 greedy continuations are the same too.",
                      ACCURACY),
    "shapes": Table("Random weights at the shapes of published models",
                    "The criteria of the checkpoints above. The weights are those of `bench/random_weights.py` in the "
                    "type of the build.", ACCURACY),
    "sizes": Table("Random weights at awkward sizes",
                   "The criteria of the checkpoints above, for the shapes of `testdata/configs/sizes`.", ACCURACY),
    "quantised": Table("Quantised matrices",
                       "Checkpoints as the libraries that quantise write them, and others that `--weights` quantises. "
                       "transformers computes with the dequantised values of the build (`bench/dequantised`). The "
                       "criteria of the checkpoints above.", {"weights": "{weights}"} | ACCURACY),
    "fallbacks": Table("Fallback paths",
                       "The criteria of the checkpoints above, with features of the target compiled out.",
                       {"switched off": "{defines}"} | ACCURACY),
    "endurance": Table("Endurance",
                       "At least 10,000 tokens in one session, restarting at position 0 at the end of the context: "
                       "once with the kernel's own choices and once teacher-forced. Every pass gives the tokens, and "
                       "the logits to the bit, of the first.",
                       {"tokens, free": "{free}", "tokens, teacher-forced": "{forced}", "passes": "{passes}",
                        "positions per pass": "{positions}"}),
    "sanitizer": Table("compute-sanitizer", "A small model decoded under the tool, without an error.",
                       {"tool": "{tool}", "errors": "{errors}", "tokens": "{tokens}"}),
    "passes": Table("Passes",
                    "Random texts, decoded token by token, and again by passes over prompts, of several rows, with "
                    "drafts and alongside other sequences, from the start, from further back, or from a prefix file, "
                    "and after launches that were cancelled midway. Logits are the same to the bit.",
                    {"cases": "{cases}", "positions compared": "{compared}", "alongside others": "{beside}",
                     "passes with drafts": "{drafts}", "cases from a prefix": "{from_prefix}",
                     "differing": "{differing}"}),
    "looping": Table("Looped and unrolled",
                     "Logits of all positions, teacher-forced, of the default build, whose layers are one loop, and of "
                     "one with `tiling.loop.roll` 0, in which every layer has its own stages: the same to the bit.",
                     {"positions": "{positions}", "logits compared": "{logits}"}),
    "bench": Table("Latency",
                   "Measured only after the kernel agreed with the plain kernels of its build in the same run. The "
                   "ceiling is a kernel that streams the same bytes and waits for nothing, its launches interleaved "
                   "with those of the decode kernel. The plain read only loads the weights.", LATENCY),
    "drawn": Table("What a temperature costs",
                   "Steps that take the largest logit, steps that draw their token with a temperature of 1, and with "
                   "one more setting; interleaved, medians. The check of the build has passed in the same run. A "
                   "temperature may add 1 % to a step of the size of Llama-3.2-1B.",
                   {"position": "{position}", "largest, µs per token": "{latency_us[median]:.1f}",
                    "temperature, µs": "{drawn_us[median]:.1f}", "more, %": "{drawn_percent:+.2f}"} |
                   {f"{title}, more, %": f"{{chosen[{how}][percent]:+.2f}}" for title, how in DRAWN.items()}),
    "roofline": Table("Latency of other types and formats", "As [latency](#latency).",
                      {"weights": "{weights}"} | LATENCY),
    "ablations": Table("What each feature is worth",
                       "The default build, and builds that lack one feature or have another value of one knob, "
                       "interleaved in one process, each checked in the same run. Medians over the rounds. The ratio "
                       "is above 1 where the feature helps; the spread is that of the rounds' ratios. A ratio that is "
                       "nearer to 1 than the spread is wide shows nothing, and neither does one as near to 1 as that "
                       "of a variant that is the default of the model anyway.",
                       {"position": "{position}", "build": "{what}", "µs per token": "{us:.1f}",
                        "default, µs": "{default_us:.1f}", "ratio": "{ratio:.3f}", "spread": "{spread:.3f}",
                        "rounds": "{rounds}"}),
    "first_answer": Table("From a checkpoint to the first answer",
                          "A checkpoint in the hub's cache, `amkc ORG/NAME -o build/`, and a chat of one message: the "
                          "commands of README.md as one types them, each a process of its own. The first text is what "
                          "the chat prints, from the start of its program, which loads the weights. `go` says whether "
                          "compiling included making the launcher.",
                          {"go": "{launcher}", "checkpoint, bytes": "{checkpoint_bytes:,}",
                           "compiled, s": "{compile_s:.1f}", "then to the first text, s": "{first_text_s:.2f}",
                           "to the end of the answer, s": "{answer_s:.2f}",
                           "checkpoint to first text, s": "{total_s:.1f}"}),
    "serving": Table("What a server costs",
                     "The same greedy requests to the engine, to a server with that engine and one client, and to the "
                     "server with several clients, in turns. Medians, and the 99th percentile. With one client a token "
                     "takes at most 3 % longer.",
                     {"sequences": "{sequences}"} |
                     {f"{title}: {who}": f"{{{key}[{field}][p50]:.1f}}, {{{key}[{field}][p99]:.1f}}"
                      for title, field in (("first token, µs", "first_token_us"), ("µs per token", "us_per_token"))
                      for key, who in SERVED.items()} |
                     {"cost, %": "{cost_percent:.1f}", "clients": "{clients}", "rounds": "{rounds}"}),
    "load": Table("A long prompt alongside others",
                  "Seven sequences decode, and a prompt of 8,192 tokens arrives. Times of their tokens before, until "
                  "the first token of the prompt, and after; tokens of one launch come together, and waits are those "
                  "between tokens that do not. The 99th percentile of the waits is at most 50 ms. A conversation of "
                  "6,000 tokens goes on with a message of 64: time to the first token, with the cache of the "
                  "conversation and without. Mixed: 32 requests with prompts of 64 to 6,144 tokens and answers of 64 "
                  "to 191, as many at a time as a pass takes. The engine of a server, without HTTP; each text is what "
                  "it is alone.",
                  {f"{phase}{title}": f"{{{phase}{field}}}" for phase in ("before", "during", "after")
                   for title, field in ((", between tokens, ms", "[between_ms][p50]:.2f"),
                                        (", p99", "[between_ms][p99]:.1f"), (", longest", "[longest_ms]:.1f"),
                                        (", tokens per second", "[tokens_per_second]:.0f"))} |
                  {"prompt, first token, ms": "{first_token_ms[p50]:.0f}",
                   "alone": "{alone_first_token_ms[p50]:.0f}",
                   "second turn, first token, ms": "{second_turn[first_token_ms][p50]:.1f}",
                   "without reuse": "{second_turn[without_reuse_ms][p50]:.0f}", "×": "{times_reused:.1f}",
                   "mixed, tokens per second": "{mixed[tokens_per_second]:.0f}",
                   "of prompts": "{mixed[prompt_tokens_per_second]:.0f}"}),
    "clients": Table("Many clients",
                     "A thousand requests of all kinds, of 32 clients at a time, some of whom disconnect or send what "
                     "is no request. Every text, log-probability and embedding is the one that the request has alone, "
                     "and one with a schema matches it; every request is counted; no goroutine and no region of the "
                     "cache is left, and the heap has grown by less than 1 MiB.",
                     {"sequences": "{sequences}", "answered": "{answered}", "cancelled": "{cancelled}", "bad": "{bad}",
                      "found the queue full": "{busy}", "differing": "{differing}",
                      "goroutines": "{before[goroutines]}, then {after[goroutines]}",
                      "heap, bytes": "{before[heap]:,}, then {after[heap]:,}"}),
    "library": Table("The Python package",
                     "The examples of its docstrings, run on the kernel: each prints what it says, as in CI on the "
                     "reference VM.", {"examples": "{examples}"}),
    "soak": Table("Eight minutes",
                  "Eight minutes of decoding freely in one session, restarting at position 0 at the end of the "
                  "context, then two passes teacher-forced. Every pass gives the tokens of the first, the "
                  "teacher-forced ones the same logits to the bit. At least 600,000 tokens; the median pass of the "
                  "last tenth takes at most 1.01 × that of the first tenth, on the host's clock.",
                  {"tokens": "{free}", "passes": "{passes}", "seconds": "{seconds:.0f}"} |
                  {f"{name}, µs": f"{{latency_us[{key}]:.1f}}" for name, key in
                   (("first pass", "first"), ("median", "median"), ("longest", "longest"),
                    ("first tenth", "first_tenth"), ("last tenth", "last_tenth"))}),
    "compare": Table("PyTorch",
                     "The kernel and transformers' LlamaForCausalLM with a static cache: its decode step as the host "
                     "launches it (no graph), in a CUDA graph, and through torch.compile (max-autotune) in a CUDA "
                     "graph. The same random weights, batch 1, interleaved on one GPU, medians over the rounds. × is "
                     "how many times the kernel's time it is. Logits are held to fp32: the kernel's by the criteria "
                     "of [checkpoints](#trained-and-tiny-checkpoints), PyTorch's by 1.5 × the errors of transformers' "
                     "own pass. With `weights` each side quantises in its own way, which the JSON names; then "
                     "PyTorch's logits are held to transformers with PyTorch's values, and the kernel to the plain "
                     "kernels of its build. Products alone are the matrix-vector products of the step by cuBLAS in a "
                     "CUDA graph, without all else.",
                     {"weights": "{weights}", "position": "{position}",
                      "kernel, µs": "{engines[amkc][us][median]:.1f}",
                      "share of ceiling": "{engines[amkc][share_of_ceiling]:.1%}"} |
                     {f"{name}{title}": f"{{engines[{key}]{field}}}" for key, name in ENGINES.items()
                      for title, field in ((", µs", "[us][median]:.1f"), (" ×", "[times_amkc]:.2f"))} |
                     {"RMS error: kernel": "{engines[amkc][rms_error]:.2e}"} |
                     {f"{ENGINES[key]}": f"{{engines[{key}][rms_error]:.2e}}" for key in ("eager", "compile")} |
                     {"rounds": "{rounds}"}),
    "prompts": Table("Prompts",
                     "From the ids of a prompt to the first token after it, by the host's clock, and one dense pass of "
                     "transformers that leaves a cache and computes the logits of the last position alone (sdpa "
                     "attention). The same random weights, batch 1, interleaved on one GPU, medians over the rounds. "
                     "First, logits of 512 positions are held to fp32 by the criteria of "
                     "[checkpoints](#trained-and-tiny-checkpoints), but for quantised matrices, and those of a text of "
                     "the longest prompt's length, read in random parts, to those of single tokens, to the bit. The "
                     "memory is what prompts use besides the cache. Rows without it are of an earlier kernel for "
                     "prompts ([performance.md](../performance.md#prompts)).",
                     {"tokens": "{prompt}", "kernel, ms": "{first_token_ms:.1f}",
                      "transformers, ms": "{transformers_ms:.1f}", "×": "{times_amkc:.2f}",
                      "memory, bytes": "{bytes:,}", "positions compared": "{compared}",
                      "RMS ratio": "{rms_ratio:.3f}", "rounds": "{rounds}"}),
    "pass_times": Table("Times of passes",
                        "A pass of 8 rows of one sequence, and one that gives 8 sequences a token each, interleaved "
                        "with single tokens of the same build. The check before it, in the same run, has compared the "
                        "logits of both kinds of passes with those of single tokens, to the bit.",
                        {"position": "{position}", "µs per token": "{latency_us[median]:.1f}",
                         "8 rows, µs": "{rows_us:.1f}", "8 rows over a token": "{rows_over_token:.3f}",
                         "8 sequences, µs": "{sequences_us:.1f}",
                         "8 sequences over a token": "{sequences_over_token:.3f}"}),
    "drafts": Table("N-gram drafts",
                    "What `run --draft ngram` gains on the texts of `testdata/drafts`: edits of code, answers that "
                    "quote a document, and texts that repeat little, each continued with drafts and without, "
                    "interleaved. × is the tokens per second with drafts over those without, of all texts of a kind, "
                    "medians over the rounds, with the slowest and the fastest text in brackets. Scripted: random "
                    "weights would write none of it, so what the kernel chooses is replaced by the committed answer. "
                    "Drafts change no text. Of 8B at least 1.9 × for edits and quotes, and 0.98 × for each text that "
                    "repeats little. Tokens of pycoder-5m are shorter than a Llama's "
                    "([what that does](../bench.md#drafts)).",
                    {"scripted": "{scripted}"} |
                    {f"{title}{what}": field.replace("KIND", f"kinds[{kind}]")
                     for kind, title in (("edit", "edits"), ("quotes", "quotes"), ("fresh", "little repeats"))
                     for what, field in ((" ×", "{KIND[ratio]:.2f} ({KIND[lowest]:.2f} to {KIND[highest]:.2f})"),
                                         (": accepted, tokens per pass",
                                          "{KIND[acceptance]:.1%}, {KIND[tokens_per_pass]:.2f}"))} |
                    {"rounds": "{rounds}"}),
    "quality": Table("Perplexity",
                     "Of the trained model on its text, in windows of 512 tokens, by `amkc quality`, and by "
                     "transformers on the same windows. The gap is to transformers in fp32: at most 1e-5 of it in "
                     "fp32, 1 % in 16 bits, 20 % quantised. Greedy: of 64 tokens after each of 8 prompts, those that "
                     "are the tokens of the build in fp32, the mean and the fewest.",
                     {"weights": "{weights}", "predictions": "{tokens}", "perplexity": "{perplexity:.6f}",
                      "transformers, fp32": "{transformers_fp32:.6f}", "gap": "{gap:.2e}",
                      "transformers, dtype": "{transformers:.6f}", "KL divergence from fp32": "{kl:.2e}",
                      "same top token": "{top1:.1%}", "greedy": "{greedy_mean}, {greedy_least}"}),
    "sequences": Table("Sequences that come and go",
                       "Eight minutes of texts that join and leave at random, as many at once as a pass takes, chosen "
                       "greedily or drawn, some steps cancelled midway. Each text is what the kernel of one token "
                       "gives of it alone, and memory does not grow.",
                       {"texts to their end": "{finished}", "that left before": "{left}", "drawn": "{sampled}",
                        "tokens compared": "{tokens}", "alongside others": "{beside}", "steps cancelled": "{aborts}",
                        "texts after one": "{after_abort}", "texts differing": "{differing}"}),
    "contexts": Table("Latency and context",
                      "As [latency](#latency), of builds for the positions that their names say: max33024 is for up to "
                      "33,023. Those that are left-out have random matrices that are in no file: mixtures of experts, "
                      "whose random routers choose other experts for every token. A build is opened and checked once "
                      "for all of its positions, and a mixture of experts reads a prompt.",
                      LATENCY | {"prompt": "{prompt}", "to the first token, ms": "{first_token_ms:.1f}"}),
}
# Sections whose rows are kept as data and are not made any more. docs/results/experiments.md shows them.
FROZEN = ("barriers", "boundaries", "timelines")
# Sections of correctness, with long tables: a page has them after the others.
CORRECTNESS = ("fixtures", "shapes", "sizes", "quantised", "fallbacks", "looping", "passes", "sequences", "endurance",
               "sanitizer")
