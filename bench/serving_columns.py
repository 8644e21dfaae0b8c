"""What docs/results shows of the sections first_answer, serving, clients and library: a title, the rule, and columns.

Needs nothing, and must not know how a row was measured.
"""


def number(row, *keys, digits=1, of=1):
    """A number within a row, or nothing."""
    for key in keys:
        row = (row or {}).get(key)
    return "" if row is None else f"{row / of:.{digits}f}"


def both(row, which, what, of=1, digits=1):
    """The median and the 99th of 100."""
    return ", ".join(filter(None, (number(row, which, what, p, of=of, digits=digits) for p in ("p50", "p99"))))


def plain(x):
    return "" if x is None else str(x)


SECTIONS = {
    "first_answer": (
        "From a checkpoint to the first answer",
        "A checkpoint that lies in the hub's cache, `amkc ORG/NAME -o build/`, and a chat of one message: the commands "
        "of README.md as one types them, each a process of its own. The first text is what the chat prints, from the "
        "start of its program on, which loads the weights. `go` says whether the machine has Go to make the build's "
        "executable with, which is then a part of compiling; without it `amkc chat build/` is that program.", (
            ("checkpoint, GB", lambda r: number(r, "checkpoint_bytes", of=1e9, digits=2)),
            ("go", lambda r: {True: "yes", False: "no"}.get(r.get("launcher"), "")),
            ("compiled, s", lambda r: number(r, "compile_s")),
            ("then to the first text, s", lambda r: number(r, "first_text_s", digits=2)),
            ("to the end of the answer, s", lambda r: number(r, "answer_s", digits=2)),
            ("checkpoint to first text, s", lambda r: number(r, "total_s")))),
    "serving": (
        "What a server costs",
        "The same greedy requests to the engine, to a server with that engine and one client, and to the server with "
        "several clients, in turns, each request with ids that no other begins with. Medians, and of 99 in 100. With "
        "one client a token takes at most 3 % longer, from the first token to the last of an answer.", (
            ("sequences", lambda r: plain(r.get("sequences"))),
            ("first token, ms: engine", lambda r: both(r, "engine", "first_token_us", of=1e3, digits=2)),
            ("server", lambda r: both(r, "server", "first_token_us", of=1e3, digits=2)),
            ("several clients", lambda r: both(r, "server_clients", "first_token_us", of=1e3, digits=2)),
            ("between tokens, µs: engine", lambda r: both(r, "engine", "between_us")),
            ("server", lambda r: both(r, "server", "between_us")),
            ("several clients", lambda r: both(r, "server_clients", "between_us")),
            ("µs per token: engine", lambda r: number(r, "engine", "us_per_token", "p50")),
            ("server", lambda r: number(r, "server", "us_per_token", "p50")),
            ("cost, %", lambda r: number(r, "cost_percent")),
            ("clients", lambda r: plain(r.get("clients"))),
            ("rounds", lambda r: plain(r.get("rounds"))))),
    "clients": (
        "Many clients",
        "A thousand requests for completions, chats, responses and embeddings, some with several prompts or answers, "
        "some with log-probabilities, also of the prompt, and some held to a JSON schema, of 32 clients at a time, "
        "some of whom go away before or during an answer, or send what is no request. Rows of 701 answers are older: "
        "none of their requests has a schema. Every text, every log-probability and every embedding is the one that "
        "the request has alone, and one with a schema is a text of it; every request is counted; there are no more "
        "goroutines than before, all regions of the cache are free, and the heap has grown by less than 1 MiB.", (
            ("sequences", lambda r: plain(r.get("sequences"))),
            ("answered", lambda r: plain(r.get("answered"))),
            ("cancelled", lambda r: plain(r.get("cancelled"))),
            ("bad", lambda r: plain(r.get("bad"))),
            ("found the queue full", lambda r: plain(r.get("busy"))),
            ("differing", lambda r: plain(r.get("differing"))),
            ("goroutines before, after",
             lambda r: ", ".join(plain(r[k]["goroutines"]) for k in ("before", "after") if k in r)),
            ("heap, MB", lambda r: ", ".join(number(r, k, "heap", of=1e6, digits=2) for k in ("before", "after"))))),
    "library": (
        "The Python package",
        "The examples of its docstrings, run on the kernel: every one has to print what it says, as in CI on the "
        "reference VM.", (("examples", lambda r: plain(r.get("examples"))),)),
}
