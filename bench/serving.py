"""Sections serving, load and clients: what a server costs, what long prompts cost those who decode alongside, and what
many clients at a time make of a server.

Each section is a list of tasks (workshop.py).
"""

from workshop import Case, Task, last_object

PYCODER = "testdata/models/pycoder-5m"
LLAMA = "testdata/configs/llama-3.2-1b"
SEED = 1
POSITIONS = 2048
COST = 3  # % that a token may take longer through a server, with one client
ROUNDS, TOKENS = 10, 256
SHORT_ROUNDS = 60  # where an answer takes 15 ms, so that the median is good to half a percent

# Of one sequence, and of several at a time. Random weights come with a tokenizer of bench/spoken.py.
SERVED = (Case(PYCODER, "bf16"), Case(PYCODER, "bf16", sequences=8),
          Case(LLAMA, "bf16", SEED, POSITIONS, spoken=True),
          Case(LLAMA, "bf16", SEED, POSITIONS, sequences=8, spoken=True))
REQUESTS = 1000

# A prompt of 8,192 tokens arrives while seven sequences decode.
LOADED_POSITIONS = 8448
LOADED = tuple(Case(f"testdata/configs/{name}", "bf16", SEED, LOADED_POSITIONS, sequences=8)
               for name in ("llama-3.1-8b", "llama-3.2-1b"))


def serving_row(shop, case):
    directory = shop.finish(case)
    shop.settle()
    rounds = SHORT_ROUNDS if case.model == PYCODER else ROUNDS
    done = shop.on_device(directory, "serving", "--rounds", str(rounds), "--tokens", str(TOKENS))
    return judge_serving(last_object(done.stdout))


def judge_serving(r):
    """A server costs little at one client."""
    cost = r.pop("cost_per_token_%")
    findings = [] if cost < COST else [f"a token takes {cost:.1f} % longer through the server; {COST} % are allowed"]
    return {"passed": not findings, "findings": findings, "cost_percent": cost} | r


def load_row(shop, case):
    directory = shop.finish(case)
    shop.settle()
    done = shop.on_device(directory, "load", accept=(0, 1))
    return judge_load(last_object(done.stdout))


def judge_load(r):
    """Nobody waits longer for a token than he may, a conversation is not read again, and texts are what they are
    alone."""
    findings = [f"differs: {text}" for text in r.pop("differing")]
    waited, turn = r["during"]["pause_ms"]["p99"], r["second_turn"]
    if waited > r["pause_ms"]:
        findings.append(f"others wait {waited:.1f} ms for a token while a prompt is read; {r['pause_ms']:.0f} ms are "
                        "allowed")
    if turn["cached"] != turn["conversation"] - 1:
        findings.append(f"{turn['cached']} tokens of a conversation of {turn['conversation']} are reused; all but the "
                        "last must be")
    times = turn["without_reuse_ms"]["p50"] / turn["first_token_ms"]["p50"]
    return r | {"passed": not findings, "findings": findings, "times_reused": times}


def clients_row(shop, case):
    directory = shop.finish(case)
    shop.settle()
    done = shop.on_device(directory, "clients", "--requests", str(REQUESTS), "--seed", str(SEED), accept=(0, 1))
    return judge_clients(last_object(done.stdout))


def judge_clients(r):
    """Every answer is the one that the request has alone, none is lost, and nothing stays behind."""
    findings = list(r["findings"] or ())
    if not findings and (not r["passed"] or r["requests"] < REQUESTS):
        findings = [f"{r['requests']} requests were sent; {REQUESTS} are needed"]
    return {"passed": not findings, "findings": findings} | {
        k: r[k] for k in ("requests", "clients", "sequences", "answered", "cancelled", "bad", "busy", "differing",
                          "statuses", "before", "after")}


def serving():
    return [Task("serving", case.key, case, lambda shop, case=case: serving_row(shop, case)) for case in SERVED]


def load():
    return [Task("load", case.key, case, lambda shop, case=case: load_row(shop, case)) for case in LOADED]


def clients():
    return [Task("clients", case.key, case, lambda shop, case=case: clients_row(shop, case)) for case in SERVED]

