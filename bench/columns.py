"""What docs/results/README.md shows of each section: its title, what its rows must satisfy, and their columns.

Needs nothing, and must not know how a row was measured.
"""

import serving_columns

# What a section shows, and what its rows must satisfy. A column is a title and a function of the row.
ACCURACY = (
    ("max error", lambda r: short(r.get("max_error"))),
    ("RMS error", lambda r: short(r.get("rms_error"))),
    ("max ÷ transformers'", lambda r: fixed(r.get("max_ratio"))),
    ("RMS ÷ transformers'", lambda r: fixed(r.get("rms_ratio"))),
    ("argmax wrong, of decided", lambda r: of(r.get("argmax_wrong"), r.get("argmax_decided"))),
    ("positions", lambda r: plain(r.get("positions"))),
)
ACCURACY_RULE = (
    "Logits of all positions, teacher-forced, against transformers in fp32 on the same GPU (eager attention, no TF32, "
    "one pass, weights {weights}). fp32: max error at most 1e-4, or 1.5 × that of transformers' fp32 against its own "
    "float64 where that is more, the same argmax everywhere{greedy}. bf16 and fp16: RMS error at "
    "most 1.0 × and max error at most 1.5 × that of transformers' own run in that type, and the same "
    "argmax wherever it is decided: where the fp32 margin exceeds 2 × the max error of transformers' own run. Where "
    "few positions are decided, the errors alone judge.")
LATENCY = (
    ("position", lambda r: plain(r.get("position"))),
    ("µs per token, median", lambda r: fixed(r.get("latency_us", {}).get("median"), 1)),
    ("p10 to p90", lambda r: span(r.get("latency_us"))),
    ("MB per token", lambda r: fixed(scaled(r.get("bytes_per_token"), 1e-6), 1)),
    ("GB/s", lambda r: fixed(r.get("gbs"), 0)),
    ("share of ceiling", lambda r: fixed(r.get("share_of_ceiling"))),
)
SECTIONS = {
    "fixtures": ("Trained and tiny checkpoints", ACCURACY_RULE.format(
        weights="upcast from the checkpoint", greedy=", and the same greedy continuations"), ACCURACY),
    "shapes": ("Random weights at the shapes of published models", ACCURACY_RULE.format(
        weights="from `bench/random_weights.py` in the type of the build", greedy=""), ACCURACY),
    "sizes": ("Random weights at awkward sizes", "The criteria of the shapes above (testdata/configs/sizes).",
              ACCURACY),
    "quantised": ("Quantised matrices", "Checkpoints as the libraries write them that quantise, and others that "
                  "`--weights` quantises. transformers computes with the values that the build has: every matrix is "
                  "dequantised by `bench/dequantised`. The criteria of the checkpoints above; without greedy "
                  "continuations.", (("--weights", lambda r: plain(r.get("weights") or "–")),) + ACCURACY),
    "fallbacks": ("Fallback paths", "The criteria of the checkpoints above, with features of the target compiled out.",
                  (("switched off", lambda r: plain(r.get("defines"))),) + ACCURACY),
    "endurance": ("Endurance", "At least 10,000 tokens in one session, restarting at position 0 at the end of the "
                  "context: once with the kernel's own choices and once teacher-forced. Every pass gives the tokens, "
                  "and the logits to the bit, of the first.", (
                      ("tokens, free", lambda r: plain(r.get("free"))),
                      ("tokens, teacher-forced", lambda r: plain(r.get("forced"))),
                      ("passes", lambda r: plain(r.get("passes"))),
                      ("positions per pass", lambda r: plain(r.get("positions"))))),
    "sanitizer": ("compute-sanitizer", "A small model decoded under the tool, without an error.", (
        ("tool", lambda r: plain(r.get("tool"))),
        ("errors", lambda r: plain(r.get("errors"))),
        ("tokens", lambda r: plain(r.get("tokens"))))),
    "passes": ("Passes", "Random texts, decoded token by token, and again by passes over prompts, of several rows, "
               "with drafts and beside other sequences, from the beginning, further back or a prefix of a file. "
               "Logits are the same to the bit, and so are the tokens that are chosen; also after launches that were "
               "given up in their middle, by kernels that are compiled to look for that at once.", (
                   ("cases", lambda r: plain(r.get("cases"))),
                   ("positions compared", lambda r: plain(r.get("compared"))),
                   ("beside other sequences", lambda r: plain(r.get("beside"))),
                   ("passes with drafts", lambda r: plain(r.get("drafts"))),
                   ("cases from a prefix", lambda r: plain(r.get("from_prefix"))),
                   ("given up", lambda r: plain(sum(r["given_up"].values()) if "given_up" in r else None)),
                   ("differing", lambda r: plain(r.get("differing"))))),
    "sequences": ("Sequences that come and go", "Eight minutes of texts that join and leave at random, as many at once "
                  "as a pass takes, chosen greedily or drawn, some steps given up in the middle. Each text is what the "
                  "kernel of one token gives of it alone, and memory does not grow.", (
                      ("texts to their end", lambda r: plain(r.get("finished"))),
                      ("that left before", lambda r: plain(r.get("left"))),
                      ("drawn", lambda r: plain(r.get("sampled"))),
                      ("tokens compared", lambda r: plain(r.get("tokens"))),
                      ("beside other sequences", lambda r: plain(r.get("beside"))),
                      ("steps given up", lambda r: plain(r.get("aborts"))),
                      ("texts after one", lambda r: plain(r.get("after_abort"))),
                      ("texts differing", lambda r: plain(r.get("differing"))))),
    "looping": ("Looped and unrolled", "Logits of all positions, teacher-forced, of the build as amkc makes it, whose "
                "layers are one loop, and of one with `tiling.loop.roll` 0, in which every layer has its own stages: "
                "the same to the bit.", (
                    ("positions", lambda r: plain(r.get("positions"))),
                    ("logits compared", lambda r: plain(r.get("logits"))))),
    "barriers": ("What looping with run-ahead is worth", "The kernel as amkc makes it, and the same with "
                 "`tiling.loop.barrier` 1: all SMs meet at the end of every layer, and nothing of the next one is "
                 "copied before. The two run interleaved on one machine, each checked against the plain kernels in the "
                 "same run; medians over the rounds.", (
                     ("position", lambda r: plain(r.get("position"))),
                     ("µs per token, loop", lambda r: fixed(r.get("loop_us"), 1)),
                     ("µs per token, barriers", lambda r: fixed(r.get("barriers_us"), 1)),
                     ("gain", lambda r: fixed(r.get("gain"))),
                     ("ceiling, µs", lambda r: fixed(r.get("ceiling_us"), 1)),
                     ("rounds", lambda r: plain(r.get("rounds"))))),
    "bench": ("Latency", "Measured only after the kernel agreed with the plain kernels of its build in the same run. "
              "The ceiling is a kernel that streams the same bytes and waits for nothing, its launches "
              "interleaved with those of the decode kernel.", LATENCY),
    "drawn": ("What a temperature costs", "Steps that take the largest logit, steps that draw their token with a "
              "temperature of 1, and with one kind of choice besides: a top-k of 50 and a top-p of 0.95, a min-p of "
              "0.05, penalties of repetition, presence and frequency, a bias, and a mask; interleaved, in launches of "
              "16; medians. The check of the build has passed in the same run. A temperature may add "
              "1 % to a step of the size of Llama-3.2-1B; of smaller models the rows say what it adds.", (
                  ("position", lambda r: plain(r.get("position"))),
                  ("largest, µs per token", lambda r: fixed(r.get("latency_us", {}).get("median"), 1)),
                  ("temperature, µs", lambda r: fixed(r.get("drawn_us", {}).get("median"), 1)),
                  ("more, %", lambda r: signed(r.get("drawn_percent"))),
                  *((f"{short}, more, %", lambda r, how=how: signed(next(
                      (c["percent"] for c in r.get("chosen", ()) if c["how"].startswith(how)), None)))
                    for short, how in (("top-k and top-p", "top-k"), ("min-p", "min-p"), ("penalties", "penalties"),
                                       ("a bias", "a bias"), ("a mask", "a mask"))))),
    "roofline": ("Models and types that a paper puts beside the peak", "As latency, above.", (
        ("--weights", lambda r: plain(r.get("weights") or "–")), *LATENCY)),
    "ablations": ("What each feature is worth", "The kernel as amkc makes it, and builds that lack one feature or have "
                  "another value of one knob. All builds of a model are open in one process and run interleaved, "
                  "each checked against the plain kernels in the same run. Medians over the rounds; the ratio, "
                  "to the kernel as amkc makes it, is the median of the rounds' ratios, and above 1 where the feature "
                  "helps. The spread is from the lowest ratio of a round to the highest. Where the ratio is nearer to "
                  "1 than the spread is wide, nothing is shown.", (
                      ("position", lambda r: plain(r.get("position"))),
                      ("build", lambda r: plain(r.get("what"))),
                      ("µs per token", lambda r: fixed(r.get("us"), 1)),
                      ("as amkc makes it", lambda r: fixed(r.get("default_us"), 1)),
                      ("ratio", lambda r: fixed(r.get("ratio"))),
                      ("spread", lambda r: fixed(r.get("spread"), 3)),
                      ("rounds", lambda r: plain(r.get("rounds"))))),
    **serving_columns.SECTIONS,
    "soak": ("Eight minutes", "Eight minutes of decoding freely in one session, restarting at position 0 at the end of "
             "the context; then two passes teacher-forced. Every pass gives the tokens of the first, the "
             "teacher-forced ones the same logits to the bit. At least 600,000 tokens; the median pass of the last "
             "tenth takes at most 1.01 × that of the first tenth, on the host's clock.", (
                 ("tokens", lambda r: plain(r.get("free"))),
                 ("passes", lambda r: plain(r.get("passes"))),
                 ("seconds", lambda r: fixed(r.get("seconds"), 0)),
                 ("µs per token: first pass, median, last, longest",
                  lambda r: ", ".join(fixed(r["latency_us"][k], 1) for k in ("first", "median", "last", "longest"))
                  if "latency_us" in r else ""),
                 ("first tenth, last tenth",
                  lambda r: ", ".join(fixed(r["latency_us"][k], 1) for k in ("first_tenth", "last_tenth"))
                  if "latency_us" in r else ""),
                 ("µs slower per hour", lambda r: fixed(r.get("latency_us", {}).get("per_hour"), 2)))),
    "compare": ("PyTorch", "The kernel and transformers' LlamaForCausalLM with a static cache of the context's length, "
                "one decode step in a CUDA graph, as it is (with the faster of transformers' attentions) and through "
                "torch.compile (max-autotune); one by one is the eager step without a graph: the same random weights, "
                "batch 1, interleaved on one GPU, medians over "
                "the rounds. Each latency is of 16 tokens between two events. × is how many times the kernel's time it "
                "is, the median of the rounds' ratios. All logits are held to fp32: the kernel by the criteria of the "
                "shapes above, PyTorch's step by 1.5 × the errors of transformers' own pass. Under `--weights` each "
                "quantises the same weights in its own way, which the JSON names, and the rivals are torch.compile and "
                "the eager step with matrices in bf16. PyTorch's step is then held to transformers with PyTorch's "
                "values, and the kernel to the plain kernels of its build. Products: the matrix-vector products of the "
                "step alone, by cuBLAS in a CUDA graph, without norms, attention and all else; each is held to a plain "
                "product in fp32.", (
                    ("--weights", lambda r: plain(r.get("weights") or "–")),
                    ("position", lambda r: plain(r.get("position"))),
                    ("kernel, µs", lambda r: engine(r, "amkc", "us")),
                    ("share of ceiling", lambda r: engine(r, "amkc", "share_of_ceiling")),
                    ("one by one, µs", lambda r: engine(r, "ops", "us")),
                    ("×", lambda r: engine(r, "ops", "times_amkc")),
                    ("eager, µs", lambda r: engine(r, "eager", "us")),
                    ("×", lambda r: engine(r, "eager", "times_amkc")),
                    ("compiled, µs", lambda r: engine(r, "compile", "us")),
                    ("×", lambda r: engine(r, "compile", "times_amkc")),
                    ("products, µs", lambda r: engine(r, "products", "us")),
                    ("×", lambda r: engine(r, "products", "times_amkc")),
                    ("GB/s: kernel, compiled",
                     lambda r: ", ".join(filter(None, (engine(r, name, "gbs") for name in ("amkc", "compile"))))),
                    ("RMS error: kernel, eager, compiled",
                     lambda r: ", ".join(engine(r, name, "rms_error") or "none" for name in ENGINES)),
                    ("rounds", lambda r: plain(r.get("rounds"))))),
    "prompts": ("Prompts", "From the ids of a prompt to the first token behind it, by the host's clock, beside one "
                "dense pass of transformers that leaves a cache and computes the logits of the last position alone "
                "(sdpa attention): the same random weights, batch 1, interleaved on one GPU, medians over the rounds. "
                "Before it, logits of 512 positions are held to fp32 by the criteria of the shapes above, and the "
                "logits of texts of the prompt's length, read in random parts, to those of single tokens, to the "
                "bit.", (
                    ("tokens", lambda r: plain(r.get("prompt"))),
                    ("kernel, ms", lambda r: fixed(r.get("first_token_ms"), 1)),
                    ("transformers, ms", lambda r: fixed(r.get("transformers_ms"), 1)),
                    ("×", lambda r: fixed(r.get("times_amkc"), 2)),
                    ("positions compared with single tokens", lambda r: plain(r.get("compared"))),
                    ("RMS ratio", lambda r: fixed(r.get("rms_ratio"))),
                    ("rounds", lambda r: plain(r.get("rounds"))))),
    "pass_times": ("Times of passes", "A pass of 8 rows of one sequence, and one that gives 8 sequences a token each, "
                   "interleaved with single tokens of the same build. The check before it, in the same run, has "
                   "compared the logits of both kinds of passes with those of single tokens, to the bit.", (
                       ("position", lambda r: plain(r.get("position"))),
                       ("µs per token", lambda r: fixed(r.get("latency_us", {}).get("median"), 1)),
                       ("8 rows, µs", lambda r: fixed(r.get("rows_us"), 1)),
                       ("over a token", lambda r: fixed(r.get("rows_over_token"))),
                       ("8 sequences, µs", lambda r: fixed(r.get("sequences_us"), 1)),
                       ("over a token", lambda r: fixed(r.get("sequences_over_token"))),
                       ("tokens/s over one sequence's",
                        lambda r: fixed(8 / r["sequences_over_token"], 2) if "sequences_over_token" in r else ""))),
    "drafts": ("Drafts by look-up", "What `run --draft ngram` gains on the texts of `testdata/drafts`: edits of code, "
               "answers that quote a document, and texts that repeat little. Each prompt is continued for as many "
               "tokens as its committed answer has, with drafts and without, interleaved; × is the tokens per second "
               "with drafts over those without, from the first token of an answer to the last, medians over the "
               "rounds, of all texts of a kind together, and in brackets that of the slowest and the fastest text. "
               "Scripted: random weights would write none of it, so what the kernel chooses is replaced by what is "
               "committed; look-up, passes and their cost are those of `run`. Otherwise the model writes. Drafts "
               "change no text, and the check has passed in the same run. Of 8B at least 1.9 × for edits and quotes, "
               "and 0.98 × for each text that repeats little. Ids are those of pycoder-5m, whose tokens are shorter "
               "than a Llama's ([what that does](../bench.md#drafts)).", (
                   ("scripted", lambda r: {True: "yes", False: "no"}.get(r.get("scripted"), "")),
                   *((title + what, lambda r, kind=kind, show=show: show(r.get("kinds", {}).get(kind)))
                     for kind, title in (("edit", "edits"), ("quotes", "quotes"), ("fresh", "little repeats"))
                     for what, show in ((", ×", lambda k: gained(k)),
                                        (": accepted, tokens per pass", lambda k: accepted(k)))),
                   ("rounds", lambda r: plain(r.get("rounds"))))),
    "boundaries": ("What a boundary between layers costs", "As for looping with run-ahead above, at longer contexts, "
                   "of larger models, and of passes that give 8 sequences a token each. A time is that of such a "
                   "pass, or of a token. Launches: the same bodies, a kernel launched for every layer, or for every "
                   "stage, queued ahead and interleaved with the loop; how many a step has, and × the loop. Medians "
                   "over the rounds; builds that do not fit the GPU together are opened one after the other. Withdrawn "
                   "are launches of which each walked all layers to find its own; they now do their own alone.", (
                       ("--weights", lambda r: plain(r.get("weights") or "–")),
                       ("sequences", lambda r: plain(r.get("sequences"))),
                       ("position", lambda r: plain(r.get("position"))),
                       ("µs, loop", lambda r: fixed(r.get("loop_us"), 1)),
                       ("µs, barriers", lambda r: fixed(r.get("barriers_us"), 1)),
                       ("gain", lambda r: fixed(r.get("gain"))),
                       *((f"µs, launches: {of}", lambda r, of=of: launches(r, of)) for of in ("layer", "stage")),
                       ("ceiling, µs", lambda r: fixed(r.get("ceiling_us"), 1)),
                       ("interleaved", lambda r: {True: "yes", False: "no"}.get(r.get("interleaved"), "")),
                       ("rounds", lambda r: plain(r.get("rounds"))))),
    "timelines": ("Where the time of a step goes", "Spans of one step, recorded by the build itself, of the kernel as "
                  "amkc makes it and of one with a barrier after every layer: shares of the consumers' time, the mean "
                  "of all SMs, and the share of the step in which an SM's producer waits, for a free slot, the step "
                  "before or a barrier. Computing includes waiting for weights. Recording costs some percent.", (
                      ("position", lambda r: plain(r.get("position"))),
                      ("µs per token: loop, barriers", lambda r: ", ".join(
                          fixed(r.get(n, {}).get("latency_us", {}).get("median"), 1) for n in ("loop", "barriers"))),
                      *((f"{kind}: loop, barriers", lambda r, kind=kind: ", ".join(
                          percent(r.get(n, {}).get("shares", {}).get(kind)) for n in ("loop", "barriers")))
                        for kind in ("exchange wait", "compute", "signal")),
                      ("producer waits: loop, barriers", lambda r: ", ".join(
                          percent(r.get(n, {}).get("producer_waits")) for n in ("loop", "barriers"))))),
    "quality": ("Perplexity", "Of the trained model on its text, in windows of 512 tokens, by `amkc quality`, and by "
                "transformers on the same windows. The gap is to transformers in fp32: at most 1e-5 of it in fp32, 1 % "
                "in 16 bits, 20 % quantised. Greedy: tokens after 8 prompts that are those of the build in fp32, of "
                "64, the mean and the fewest.", (
                    ("--weights", lambda r: plain(r.get("weights") or "–")),
                    ("predictions", lambda r: plain(r.get("tokens"))),
                    ("perplexity", lambda r: fixed(r.get("perplexity"), 6)),
                    ("transformers, fp32", lambda r: fixed(r.get("transformers_fp32"), 6)),
                    ("gap", lambda r: short(r.get("gap"))),
                    ("transformers, dtype", lambda r: fixed(r.get("transformers"), 6)),
                    ("KL divergence from fp32", lambda r: short(r.get("kl"))),
                    ("same top token", lambda r: percent(r.get("top1"))),
                    ("greedy", lambda r: ", ".join(plain(r.get(f"greedy_{k}")) for k in ("mean", "least"))))),
    "contexts": ("Latency and context", "The same, of builds for the positions that their names say: max33024 is for "
                 "up to 33,023.", LATENCY),
}


ENGINES = ("amkc", "eager", "compile")  # those whose errors are shown; what is launched one by one has the eager's


def engine(row, name, what):
    """A number of one of the engines that a row compares."""
    x = row.get("engines", {}).get(name, {}).get(what)
    if isinstance(x, dict):
        return fixed(x["median"], 1)
    return short(x) if what.endswith("error") else fixed(x, {"times_amkc": 2, "gbs": 0}.get(what, 3))


def gained(k):
    """How many times as fast texts of a kind are with drafts: together, and the slowest and the fastest of them."""
    return f"{k['ratio']:.2f} ({k['lowest']:.2f} to {k['highest']:.2f})" if k else ""


def accepted(k):
    """Which share of drafts was accepted, and how many tokens a pass gave that verified some."""
    return f"{percent(k['acceptance'])}, {k['tokens_per_pass']:.2f}" if k else ""


def launches(row, of):
    """The time of a token whose layers, or stages, are launched one by one, and how many times the loop's it is."""
    x = row.get("launches", {}).get(of)
    if x and not x.get("alone"):
        return f"{x['launches']}: withdrawn"
    return f"{x['launches']}: {x['us']:.1f} ({x['gain']:.3f} ×)" if x else ""


def plain(x):
    return "" if x is None else str(x)


def short(x):
    return "" if x is None else f"{x:.2e}"


def fixed(x, digits=3):
    return "" if x is None else f"{x:.{digits}f}"


def signed(x):
    return "" if x is None else f"{x:+.2f}"


def percent(x):
    return "" if x is None else f"{100 * x:.1f} %"


def of(part, whole):
    return "" if part is None else f"{part} of {whole}"


def scaled(x, factor):
    return None if x is None else x * factor


def span(quantiles):
    return "" if not quantiles else f"{quantiles['p10']:.1f} to {quantiles['p90']:.1f}"
