"""A decode step of transformers as PyTorch runs it fastest: static tensors, one CUDA graph, the token fed back inside
it.

The step is transformers' LlamaForCausalLM with a static KV cache. What transformers would compute anew in every layer
or look up on the host is made once per step, which favours PyTorch: all layers share one position, and the mask is one
row.

Needs torch and transformers. Must not know amkc, nor what is done with the numbers.
"""

import statistics

import torch
from transformers.cache_utils import Cache, StaticLayer

WARM_UP = 3  # steps before a capture, in which libraries allocate and choose
BATCH = 8  # launches queued before the host waits for them
# What torch.compile(mode="max-autotune") sets, without its own CUDA graphs: the step is captured like the eager one.
COMPILE_MODE = "max-autotune-no-cudagraphs"


class Rows(StaticLayer):
    """A layer's cache, which writes at a position that all layers share. StaticLayer counts in a tensor of its own,
    with three small kernels per layer."""

    def __init__(self, length, position):
        super().__init__(max_cache_len=length)
        self.position = position

    def update(self, keys, values, *args, **kwargs):
        self.keys.index_copy_(2, self.position, keys)
        self.values.index_copy_(2, self.position, values)
        return self.keys, self.values

    def get_seq_length(self):
        return self.position


class CudaGraph:
    """Captures a function; run() is a replay."""

    def __init__(self, step):
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(WARM_UP):
                step()
        torch.cuda.current_stream().wait_stream(side)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, capture_error_mode="thread_local"):  # what other threads do is not a part of it
            step()
        self.run = graph.replay

    def mark(self):
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def microseconds(self, start, end):
        return start.elapsed_time(end) * 1000

    def wait(self):
        torch.cuda.synchronize()


class DecodeStep:
    """One token of a model for up to `length` positions. graph is CudaGraph, or what stands in for it where there is no
    GPU."""

    def __init__(self, model, length, attention, compiled, graph=CudaGraph):
        self.model, self.length = model, length
        self.model.set_attn_implementation(attention)
        p = next(model.parameters())
        c = model.config
        self.positions = torch.arange(length, device=p.device)
        self.position = torch.zeros(1, dtype=torch.int64, device=p.device)
        self.token = torch.zeros(1, dtype=torch.int64, device=p.device)
        self.logits = torch.zeros(c.vocab_size, dtype=p.dtype, device=p.device)
        self.seen = torch.zeros((), dtype=p.dtype, device=p.device)
        self.unseen = torch.full((), torch.finfo(p.dtype).min, dtype=p.dtype, device=p.device)
        head = getattr(c, "head_dim", None) or c.hidden_size // c.num_attention_heads
        layers = [Rows(length, self.position) for _ in range(c.num_hidden_layers)]
        row = torch.zeros(1, c.num_key_value_heads, 1, head, dtype=p.dtype, device=p.device)
        for layer in layers:
            layer.lazy_initialization(row, row)
        self.cache = Cache(layers=layers)
        self.once = self.step
        if compiled:
            self.once = torch.compile(self.step, mode=COMPILE_MODE, fullgraph=True, dynamic=False)
        with torch.no_grad():
            self.graph = graph(self.once)

    def step(self):
        """Decodes the token at the position; leaves logits, the next token and the next position in their places."""
        mask = torch.where(self.positions <= self.position, self.seen, self.unseen)[None, None, None]
        logits = self.model(input_ids=self.token[None], attention_mask=mask, position_ids=self.position[None],
                            past_key_values=self.cache, use_cache=True).logits[0, -1]
        self.logits.copy_(logits)
        self.token.copy_(torch.argmax(logits, keepdim=True))  # the lowest id among equals, as far as torch keeps to it
        self.position.add_(1)

    def put(self, token, position):
        self.token.copy_(token)
        self.position.fill_(position)

    @torch.no_grad()
    def forced(self, ids):
        """Decodes ids from position 0 on, which fills the cache, and returns the logits after each, float32 [len(ids),
        vocab]."""
        given = torch.tensor(ids, device=self.token.device)[:, None]
        out = torch.empty(len(ids), self.logits.numel(), dtype=self.logits.dtype, device=self.logits.device)
        self.position.fill_(0)
        for i in range(len(ids)):
            self.token.copy_(given[i])
            self.graph.run()
            out[i].copy_(self.logits)
        return out.float().cpu().numpy()

    @torch.no_grad()
    def timed(self, token, position, steps, launches, warm_up, captured=True):
        """Quantiles of the microseconds per token over launches of steps tokens each, all from the same token and
        position, and whether all of them ended in the token that single steps lead to. Rows before the position that
        forced has not left are zeros, which take as long. A step is a replay of the graph, or, not captured, as many
        launches as it has operations."""
        run = self.graph.run if captured else self.once
        token = torch.tensor([token], device=self.token.device)
        self.put(token, position)
        for _ in range(steps):
            run()
            self.graph.wait()
        last = int(self.token)
        return time_launches(self.graph, lambda: self.put(token, position), run, lambda: int(self.token) == last, steps,
                             launches, warm_up)


def time_launches(graph, begin, run, same, steps, launches, warm_up):
    """Quantiles of the microseconds of a run over launches of steps runs each, before which begin() is called; and
    whether same() held whenever the host looked, which is after some launches each time."""
    times, done, repeats = [], 0, True
    while done < warm_up + launches:
        marks = []
        for _ in range(min(BATCH, warm_up + launches - done)):
            begin()
            start = graph.mark()
            for _ in range(steps):
                run()
            marks.append((start, graph.mark()))
        graph.wait()
        repeats = repeats and same()
        times += [graph.microseconds(*m) / steps for m in marks]
        done += len(marks)
    return quantiles(times[warm_up:]), repeats


def quantiles(times):
    """Median, p10 and p90, linear between neighbours, as the launcher gives them."""
    if len(times) == 1:
        return {"median": times[0], "p10": times[0], "p90": times[0]}
    tenths = statistics.quantiles(times, n=10, method="inclusive")
    return {"median": statistics.median(times), "p10": tenths[0], "p90": tenths[8]}
