"""Section contexts: how long a token takes at several positions, of dense models and of mixtures of experts.

A build is opened and checked once for all of its rows that are to be made: what it loads may be larger than the disk,
and takes longer than what is measured. Of models whose matrices are in no file, a prompt is read too: no other program
can have their weights, so that section prompts has nothing to compare it with.

The section is a list of tasks (workshop.py).
"""

from accuracy import SEED, SHAPE_POSITIONS
from endurance import LONG_POSITIONS
from turns import Entrant, take_turns
from workshop import Case, OutOfTime, Task

FAMILY_POSITIONS = 16_512  # the last tokens of a launch from 16,368 are decoded with 16,384 rows
# The last tokens of a launch from 32,752 are decoded with 32,768 rows.
CONTEXTS = tuple((Case(f"testdata/configs/{name}", "bf16", SEED, LONG_POSITIONS), (128, 8192, 32_752))
                 for name in ("llama-3.2-1b", "qwen3-0.6b-as-llama", "llama-3.1-8b")) + (
    (Case("testdata/configs/smollm2-135m", "bf16", SEED, SHAPE_POSITIONS), (128,)),) + tuple(
    (Case(f"testdata/configs/{name}", "bf16", SEED, FAMILY_POSITIONS), positions)
    for name, positions in (("qwen3-0.6b", (128,)), ("qwen3-8b", (128,)), ("qwen2.5-7b", (128,)),
                            ("mistral-7b", (128, 16_368))))

# Mixtures of experts, whose matrices are in no file: some are larger than the disk of a machine with a GPU. gpt-oss has
# its experts in MXFP4, as it is published.
EXPERT_POSITIONS = 8_448
CONTEXTS += tuple(
    (Case(f"testdata/configs/{name}", "bf16", SEED, EXPERT_POSITIONS, weights=weights, left_out=True), (128, 8192))
    for name, weights in (("gpt-oss-20b", ""), ("gpt-oss-120b", ""), ("mixtral-8x7b", ""), ("qwen3-30b-a3b", "int8"),
                          ("qwen3-30b-a3b", "int4"), ("qwen3-30b-a3b", "")))
PROMPT = 2048  # tokens of a prompt, for those
LAUNCHES = 100  # at a position, as many as bench takes by itself


class Measurement:
    """The turns of one build, taken when the first row asks for them, at the positions of all rows to be made."""

    def __init__(self, case, positions):
        self.case, self.positions = case, positions
        self.taken, self.log = {}, []  # rows by position, and the commands that made them
        self.failed = None

    def row(self, shop, position):
        if position not in self.taken and not self.failed:
            self.measure(shop, [p for p in self.positions if p == position or row_id(self.case, p) in shop.planned])
        shop.log += self.log
        if self.failed:
            raise self.failed
        return self.taken.pop(position)

    def measure(self, shop, positions):
        before, shop.log = shop.log, self.log
        try:
            entrants = {self.case.key: Entrant(shop.finish(self.case))}
            shop.settle()
            turns = take_turns(shop, entrants, positions, 1, LAUNCHES, PROMPT if self.case.left_out else 0)
            self.taken = {p: judge_context(turns[self.case.key, p][0]) for p in positions}
        except OutOfTime:
            raise
        except Exception as e:  # it would fail again, and take as long
            self.failed = e
        finally:
            shop.log = before


def judge_context(turn):
    """A latency counts if the check of the opening has passed, and so does a first token."""
    row = {"passed": not turn["findings"]} | turn
    if prompt := row.pop("prompt", None):
        row |= {"prompt": prompt["tokens"], "first_token_ms": prompt["first_token_us"]["median"] / 1e3}
    return row


def row_id(case, position):
    return f"contexts/{case.key}-{position}"


def contexts():
    tasks = []
    for case, positions in CONTEXTS:
        measured = Measurement(case, positions)
        tasks += [Task("contexts", f"{case.key}-{p}", case, lambda shop, m=measured, p=p: m.row(shop, p))
                  for p in positions]
    return tasks
