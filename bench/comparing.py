"""Section compare: the emitted kernel and PyTorch, interleaved on the same weights and one GPU.

The rivals are transformers' LlamaForCausalLM with a static cache, one decode step captured in a CUDA graph: as it is,
and through torch.compile; and as it is without a graph, one launch after another. bench/torch_step.py says how. What is
compiled is a process of its own, so that what goes wrong in one costs its numbers and no others. None of these is
cuBLAS alone: a row of its own has the matrix-vector products of a step and nothing else in a CUDA graph
(bench/torch_products.py).

Where matrices are quantised, the rivals are torch.compile in the forms of bench/torch_quantised.py, and the step in a
CUDA graph as it is, not quantised. Both quantise the same weights in their own ways, and so compute with other values:
PyTorch's logits are held to transformers with PyTorch's values, and the kernel to the plain kernels of its build, by
the check with which bench begins.

Needs numpy; torch and transformers are needed by bench/torch_peer.py alone.
"""

import concurrent.futures
import contextlib
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import criteria
from accuracy import SEED, SHAPE_POSITIONS, config, spread_ids
from endurance import LONG_POSITIONS, judge_bench
from peer import Peer, PeerFailed
from workshop import Case, StepFailed, Task, last_object

MODELS = ("llama-3.2-1b", "llama-3.1-8b", "qwen3-0.6b-as-llama")


@dataclass(frozen=True)
class Format:
    """Of quantised matrices: what bench/torch_peer.py calls it, and what each of the two makes of it."""

    peer: str
    amkc: str
    compile: str


FORMATS = {  # as --weights of amkc has them
    "int8": Format("int8", "int8, a scale for 128 columns", "int8, a scale for a row"),
    "int4:g128:sym": Format("int4:g128", "int4, a scale for 128 columns; lm_head as with int8",
                            "int4, a scale and a zero for 128 columns; lm_head as with int8"),
}
QUANTISED = ("llama-3.1-8b", "llama-3.2-1b")  # the models that are compared with these
POSITION = 128
FURTHER = (2048, 8192)  # positions at which these models are compared too
SMALL = ("llama-2048h-4l", 0)  # what AutoMegaKernel's paper compares, where it does
STEPS = 16  # tokens between two events, for a launch of ours and for replays of a graph
ROOM = 8  # the cache's length is a multiple of it, for which PyTorch has faster attention
PRODUCTS = ("mm", "mv", "together-mm", "together-mv")  # forms of bench/torch_products.py
ATTENTIONS = ("sdpa", "eager")  # of transformers, between which the eager step may choose
TRIAL_LAUNCHES = 20
OPEN_SECONDS = 180  # importing PyTorch, and computing weights on the GPU
ASK_SECONDS = 300
# PyTorch may be so much further from fp32 than transformers' own pass over all positions, or it computes something
# else.
PEER_FACTOR = criteria.MAX_FACTOR


@dataclass(frozen=True)
class Options:
    rounds: int = 5
    launches: int = 100  # a round, of each
    warm_up: int = 10
    one_by_one: int = 10  # launches a round of the step without a graph, which takes as long as the host needs
    compile_seconds: float = 300  # 0: torch.compile is left out


class Engine:
    """What is measured of one of those that are compared: errors of its logits, and latencies round by round."""

    def __init__(self):
        self.facts = {}  # what goes into the row besides
        self.findings = []
        self.step = None  # what its peer calls it
        self.lacking = None  # why there are no more numbers
        self.rounds = []  # quantiles of microseconds per token

    def judge(self, verdict):
        self.findings += verdict["findings"]
        self.facts |= {k: verdict[k] for k in ("max_error", "rms_error", "max_ratio", "rms_ratio", "argmax_wrong",
                                               "argmax_decided")}


class Comparison:
    """The measurements of one model at one position."""

    def __init__(self, shop, case, position, options):
        self.shop, self.case, self.position, self.o = shop, case, position, options
        c = config(case.model)
        self.vocab, self.cache_bytes = c["vocab_size"], cache_bytes(c, position)
        # Logits are compared at the first positions, and times are taken at another where that is further.
        self.ids = spread_ids(min(position, POSITION) + STEPS, self.vocab)
        self.length = -(-(position + STEPS) // ROOM) * ROOM
        self.format = FORMATS.get(case.weights)
        self.kept = {}  # the references, by what peers call their form
        self.engines = {name: Engine() for name in self.names()}
        if self.format:
            for name in ("amkc", "compile"):
                self.engines[name].facts["form"] = getattr(self.format, name)
            self.engines["eager"].facts["form"] = "not quantised"
        self.weights = None  # how many a step reads
        self.bench = []  # what the launcher said in each round
        self.peers = {}
        self.open = contextlib.ExitStack()

    def names(self):
        return ("amkc", "eager", "compile") if self.format else ("amkc", "ops", "eager", "compile")

    def say(self, text):
        print(f"    {self.case.name} at {self.position}: {text}", flush=True)

    def path(self, name):
        return str(self.shop.work / f"compare-{name}.npy")

    def peer(self, name, form):
        args = [sys.executable, str(Path(__file__).with_name("torch_peer.py")), self.case.model, "--seed",
                str(self.case.seed), "--dtype", self.case.dtype]
        args += ["--weights", form] if form else []
        self.shop.log.append("python3 bench/torch_peer.py " + " ".join(args[2:]) + f"  # {name}")
        p = Peer(args, self.shop.work / f"compare-{name}.log", self.shop.budget, self.shop.env)
        self.open.callback(p.close)
        return p

    def row(self):
        with self.open:
            if self.o.compile_seconds:
                self.begin_compile(ATTENTIONS[0])
            self.directory = self.shop.finish(self.case)
            if self.o.compile_seconds:
                concurrent.futures.wait([self.compiling[1]])
            self.amkc()
            self.eager()
            self.compile()
            self.rounds()
        return self.judged()

    def rounds(self):
        self.shop.settle()
        for i in range(self.o.rounds):
            self.round(i)

    def judged(self):
        row = judge_comparison(self.engines, self.bench, self.position, self.o)
        self.rates(row)
        for name, e in row["engines"].items():
            if "times_amkc" in e:
                self.say(f"{name}: {e['us']['median']:.1f} µs, {e['times_amkc']:.2f} times amkc's, "
                         f"{100 * e['share_of_ceiling']:.1f} % of the ceiling")
        return row

    def rates(self, row):
        """Adds how many bytes each reads for a token, weights and cache, and how fast: to the row."""
        own = row.get("bytes_per_token")
        sizes = {name: e.facts["weight_bytes"] for name, e in self.engines.items() if "weight_bytes" in e.facts}
        if own:
            sizes["amkc"] = own - self.cache_bytes
        for name, size in sizes.items():
            e = row["engines"][name]
            cache = 0 if name == "products" else self.cache_bytes
            e |= {"weight_bytes": size, "bytes_per_token": size + cache}
            if self.weights:
                e["bits_per_weight"] = 8 * size / self.weights
            if "us" in e:
                e["gbs"] = e["bytes_per_token"] / e["us"]["median"] / 1e3

    def references(self, form=""):
        """Logits of transformers in fp32 and in the dtype, one pass over all positions: what all others are held to
        that multiply with the same values."""
        if form in self.kept:
            return self.kept[form]
        p = self.peer("reference", form)
        paths = [self.path(f"{name}-{form}".rstrip("-").replace(":", "-")) for name in ("fp32", "own")]
        try:
            p.ask({"do": "reference", "ids": self.ids, "fp32": paths[0], "own": paths[1]}, OPEN_SECONDS + ASK_SECONDS)
        except PeerFailed as e:
            raise StepFailed(f"no reference: {e}") from None
        finally:
            p.close()
        self.kept[form] = [np.load(path, mmap_mode="r") for path in paths]
        return self.kept[form]

    def amkc(self):
        if self.case.weights:
            return
        ref, own = self.references()
        got = self.shop.logits(self.directory, self.ids, f"spread_ids({len(self.ids)}, {self.vocab})")
        self.engines["amkc"].judge(criteria.judge_half(got, own, ref))

    def eager(self):
        """Opens the eager step with each attention that transformers has, and keeps the one that is faster on trial:
        with its graph, and without."""
        engine, peers, verdicts, trials = self.engines["eager"], {}, {}, {}
        for attention in ATTENTIONS[:1] if self.format else ATTENTIONS:  # the first is faster in all rows so far
            try:
                peers[attention] = self.peers["eager"] = self.peer(f"eager-{attention}", "")
                answer = peers[attention].ask(self.opening(attention, compile=False), OPEN_SECONDS)
                verdicts[attention] = self.opened("eager", attention, answer)
                trials[attention] = self.timed("eager", attention, TRIAL_LAUNCHES)["median"]
                self.say(f"eager PyTorch, attention {attention}: {trials[attention]:.1f} µs on trial")
            except PeerFailed as e:
                engine.facts.setdefault("failed", {})[attention] = str(e)
                self.say(f"eager PyTorch, attention {attention}: {e}")
        best = min(trials, key=trials.get, default=None)
        for attention, peer in peers.items():
            if attention != best:
                peer.close()
        same = [self.engines[name] for name in ("eager", "ops") if name in self.engines]
        for e in same:
            if best is None:
                e.lacking = "; ".join(engine.facts["failed"].values())
                continue
            e.facts["attention"] = e.step = best
            e.judge(verdicts[best])
        if best is None:
            return
        self.peers["eager"] = self.peers["ops"] = peers[best]
        engine.facts["trial_us"] = trials
        if "ops" in self.engines:
            self.engines["ops"].facts["weight_bytes"] = engine.facts["weight_bytes"]

    def begin_compile(self, attention):
        """Has the step compiled while amkc's is built, which leaves the GPU alone: PyTorch chooses kernels by how long
        they take there, and nothing else is opened before it has."""
        peer = self.peers["compile"] = self.peer("compile", self.format.peer if self.format else "")
        self.open.callback(peer.close, now=True)  # it may be compiling still
        pool = concurrent.futures.ThreadPoolExecutor(1)
        self.compiling = attention, pool.submit(peer.ask, self.opening(attention, compile=True), self.o.compile_seconds)
        pool.shutdown(wait=False)

    def compile(self):
        """The compiled step, with the attention that the eager step is faster with, or the first if there is none."""
        engine = self.engines["compile"]
        if not self.o.compile_seconds:
            engine.lacking = "left out"
            return
        attention = self.engines["eager"].facts.get("attention", ATTENTIONS[0])
        try:
            if attention != self.compiling[0]:  # it was begun with the other one, which has been faster so far
                self.peers["compile"].close(now=True)
                self.begin_compile(attention)
            verdict = self.opened("compile", attention, self.compiling[1].result())
        except PeerFailed as e:
            engine.lacking = str(e)
            self.say(f"torch.compile: {e}")
            return
        engine.facts["attention"] = engine.step = attention
        engine.judge(verdict)

    def opening(self, attention, compile):
        """The request that opens a step."""
        return {"do": "open", "name": attention, "attention": attention, "compile": compile, "length": self.length}

    def opened(self, name, attention, answer):
        """Fills the cache of a step that a peer has opened with this answer, and returns the verdict on its logits."""
        compiled = name == "compile"
        ref, own = self.references(self.format.peer if self.format and compiled else "")
        self.weights, self.engines[name].facts["weight_bytes"] = answer["weights"], answer["weight_bytes"]
        if compiled:
            self.engines[name].facts["compile_seconds"] = round(answer["seconds"], 1)
            self.say(f"torch.compile took {answer['seconds']:.0f} s")
        self.peers[name].ask({"do": "forced", "name": attention, "ids": self.ids, "out": self.path(name)}, ASK_SECONDS)
        return criteria.judge_half(np.load(self.path(name), mmap_mode="r"), own, ref, rms_factor=PEER_FACTOR)

    def timed(self, name, step, launches):
        captured = name != "ops"
        answer = self.peers[name].ask({"do": "timed", "name": step, "token": self.ids[-STEPS],
                                       "position": self.position, "steps": STEPS,
                                       "launches": launches if captured else self.o.one_by_one,
                                       "warm_up": self.o.warm_up if captured else 1, "captured": captured}, ASK_SECONDS)
        facts = self.engines[name].facts
        # bf16 on a GPU need not repeat; it is for the record.
        facts["repeats"] = facts.get("repeats", True) and answer["repeats"]
        return answer["us"]

    def round(self, i):
        """One measurement of each, as far as each has numbers so far."""
        for name, engine in self.engines.items():
            if engine.lacking:
                continue
            try:
                us = self.bench_amkc() if name == "amkc" else self.timed(name, engine.step, self.o.launches)
            except (PeerFailed, StepFailed) as e:
                engine.lacking = f"round {i}: {e}"
                self.say(f"{name}: {engine.lacking}")
                continue
            engine.rounds.append(us)
            self.say(f"round {i}, {name}: {us['median']:.1f} µs ({us['p10']:.1f} to {us['p90']:.1f})")

    def bench_amkc(self):
        done = self.shop.on_device(self.directory, "bench", "--json", "--position", str(self.position),
                                   "--steps-per-launch", str(STEPS),
                                   "--launches", str(self.o.launches), "--warm-up", str(self.o.warm_up))
        r = judge_bench(last_object(done.stdout))
        if r["findings"]:
            raise StepFailed(r["findings"][0])
        self.bench.append(r)
        return r["latency_us"]


class Products(Comparison):
    """Of a model: the whole step of amkc, and its matrix-vector products alone in a CUDA graph, in the form that is the
    fastest on trial."""

    def names(self):
        return "amkc", "products"

    def row(self):
        with self.open:
            self.directory = self.shop.finish(self.case)
            self.products()
            self.rounds()
        return self.judged()

    def products(self):
        engine, trials, answers = self.engines["products"], {}, {}
        peer = self.peers["products"] = self.peer("products", "")
        try:
            for form in PRODUCTS:
                answers[form] = peer.ask({"do": "products", "name": form, "form": form}, OPEN_SECONDS)
                trials[form] = self.timed("products", form, TRIAL_LAUNCHES)["median"]
                self.say(f"products, {form}: {trials[form]:.1f} µs on trial, off by at most "
                         f"{answers[form]['worst']:.1e}")
        except PeerFailed as e:
            engine.lacking = str(e)
            return
        engine.step = min(trials, key=trials.get)
        engine.facts |= {"form": engine.step, "trial_us": trials} | {
            k: answers[engine.step][k] for k in ("worst", "products", "weight_bytes")}


def judge_comparison(engines, bench, position, o):
    """The row. It passes if all have run, and all logits are as close as they must be; speed is reported, not
    judged."""
    findings = [f"{name}: {f}" for name, e in engines.items() for f in e.findings]
    lacking = [f"{name}: {e.lacking}" for name, e in engines.items() if e.lacking]
    ours = engines["amkc"]
    row = {"position": position, "steps_per_launch": STEPS, "launches": o.launches, "rounds": o.rounds, "engines": {}}
    if bench:
        row["ceiling_us"] = over_rounds([r["ceiling_us"] for r in bench])
        row |= {k: bench[-1][k] for k in ("bytes_per_token", "read_gbs", "machine") if k in bench[-1]}
    for name, e in engines.items():
        entry = e.facts | ({"not_run": e.lacking} if e.lacking else {})
        if e.rounds:
            entry |= {"us": over_rounds(e.rounds), "round_us": [r["median"] for r in e.rounds]}
            # A round's launches lie next to each other in time, so ratios are taken within it.
            pairs = [(us["median"], r["latency_us"]["median"], r["ceiling_us"]["median"])
                     for us, r in zip(e.rounds, bench)]
            if pairs:
                entry |= {"times_amkc": float(np.median([us / amkc for us, amkc, _ in pairs])),
                          "share_of_ceiling": float(np.median([ceiling / us for us, _, ceiling in pairs]))}
        row["engines"][name] = entry
    if ours.lacking:
        findings.append(f"amkc: {ours.lacking}")
    if findings:
        return {"passed": False, "findings": findings} | row
    if lacking:
        return {"passed": None, "findings": [], "not_run": "; ".join(lacking)} | row
    return {"passed": True, "findings": []} | row


def over_rounds(quantiles):
    """The median over the rounds of each quantile."""
    return {q: float(np.median([r[q] for r in quantiles])) for q in ("median", "p10", "p90")}


def cache_bytes(config, position):
    """How much of a cache in 16 bits a token reads: K and V of all positions before its own, the mean of a launch."""
    heads = config["num_attention_heads"]
    head_dim = config.get("head_dim") or config["hidden_size"] // heads
    row = 2 * 2 * config["num_hidden_layers"] * config.get("num_key_value_heads", heads) * head_dim
    return row * (position + (STEPS - 1) / 2)


def task(model, position, options, weights="", what=Comparison):
    long = position + STEPS > SHAPE_POSITIONS
    case = Case(f"testdata/configs/{model}", "bf16", SEED, LONG_POSITIONS if long else SHAPE_POSITIONS, weights=weights)
    name = f"{case.key}-{position}" + ("-products" if what is Products else "")
    return Task("compare", name, case, lambda shop: what(shop, case, position, options).row())


LARGE = Options(rounds=3, launches=40)  # a row in less than nine minutes


def compare():
    options = {"llama-3.1-8b": LARGE}
    tasks = [task(model, POSITION, options.get(model, Options())) for model in MODELS]
    few = {model: options.get(model, Options(rounds=3)) for model in QUANTISED}
    tasks += [task(model, POSITION, few[model], weights) for model in QUANTISED for weights in FORMATS]
    tasks += [task(*SMALL, Options(rounds=3), weights) for weights in ("", *FORMATS)]
    tasks += [task(model, position, few[model], weights) for position in FURTHER for model in QUANTISED
              for weights in ("", *FORMATS)]
    return tasks + [task(model, position, Options(rounds=3), what=Products)
                    for model, position in (*((m, POSITION) for m in MODELS), SMALL)]
