"""Section drawn: what a step costs that draws its token, beside one that takes the largest logit.

The section is a list of tasks (workshop.py).
"""

from accuracy import SEED, SHAPE_POSITIONS
from endurance import judge_bench
from workshop import Case, Task, last_object

POSITION = 128
LAUNCHES = 300  # a median good to 0.1 %
COST = 1  # % that a temperature may add to a step
LARGE = "testdata/configs/llama-3.2-1b"  # from this size on; of smaller ones the row says what it is
DRAWN = (Case("testdata/models/pycoder-5m", "bf16"),
         Case("testdata/configs/smollm2-135m", "bf16", SEED, SHAPE_POSITIONS),
         Case(LARGE, "bf16", SEED, SHAPE_POSITIONS))


def drawn_row(shop, case):
    directory = shop.finish(case)
    shop.settle()
    done = shop.on_device(directory, "bench", "--json", "--drawn", "--position", str(POSITION), "--launches",
                          str(LAUNCHES))
    return judge_drawn(last_object(done.stdout), COST if case.model == LARGE else None)


def judge_drawn(r, most=None):
    """A row of the latency, and by how many % of it steps take longer that draw: by a temperature, where most says how
    many are allowed, and with each kind of choice besides."""
    row = judge_bench(r)
    if not row["passed"]:
        return row

    def percent(q):
        return 100 * (q["median"] / r["latency_us"]["median"] - 1)

    row |= {"drawn_us": r["drawn_us"], "drawn_percent": percent(r["drawn_us"]),
            "chosen": [c | {"percent": percent(c["latency_us"])} for c in r["chosen"]]}
    if most is not None and row["drawn_percent"] > most:
        row |= {"passed": False, "findings": [
            f"a step takes {row['drawn_percent']:.1f} % longer with a temperature; {most} % are allowed"]}
    return row


def drawn():
    return [Task("drawn", f"{case.key}-{POSITION}", case, lambda shop, case=case: drawn_row(shop, case))
            for case in DRAWN]
