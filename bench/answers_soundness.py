"""Answers to the published figures of E2 that have no table of their own: why programs were rejected, and how long it
took (bench/answers.py says what an answer is). Needs the standard library alone.
"""

import published
from answers import Answer, shown

# What the published buckets are in codes of validate: the code of the first error of a program.
CODES = {"cycle": ("AMK3120",),
         "race": ("AMK3112", "AMK3130", "AMK3131", "AMK3132", "AMK3133", "AMK3134", "AMK3135", "AMK3136", "AMK3138",
                  "AMK3140", "AMK3142"),
         "unsatisfiable": ("AMK3111", "AMK3113"),
         "reference": ("AMK3101", "AMK3103", "AMK3921"),
         "capacity": ("AMK3022", "AMK3151", "AMK3923"),
         "arity": ("AMK3011", "AMK3012", "AMK3102", "AMK3104", "AMK3105")}
SAYS = {"cycle": "", "unsatisfiable": "thresholds that are never reached, counters that nobody signals",
        "race": "a wait for fewer than all producers counts here, as it does in the paper",
        "reference": "indices, names and views outside what there is", "capacity": "pages, on-chip memory and the ABI",
        "arity": "operands, shapes and types"}
STRICT = "the oracles differ: ours see the races of partial waits that the published one cannot, and call less safe"


def rejections(r):
    row_id = "soundness/rejections"
    row = r.row("cpu", row_id)

    def answer(bucket, of, why):
        return shown([(lambda x: counted(x[of], bucket), row)], row_id, why)

    given = {f"rejected-{bucket}": answer(bucket, "codes", SAYS[bucket]) for bucket in CODES}
    if row:
        a = given["rejected-arity"]
        given["rejected-arity"] = Answer(a.ours, a.command, f"{a.why}; {unnamed(row['codes'])}")
        rest = {code: n for code, n in row["strict"].items() if code not in CODES["race"] + CODES["cycle"]}
    why = f"{STRICT}; the rest: {listed(rest)}" if row and rest else STRICT
    return given | {f"strict-{bucket}": answer(bucket, "strict", why) for bucket in ("race", "cycle")} | {
        "wall": wall(r)}


def counted(codes, bucket):
    named = {code: codes[code] for code in CODES[bucket] if code in codes}
    total = f"{total_of(named):,} of {total_of(codes):,}"
    return f"{total} ({listed(named)})" if named else total


def total_of(codes):
    return sum(sum(classes.values()) for classes in codes.values())


def listed(codes):
    return ", ".join(f"{code}: {sum(classes.values()):,}" for code, classes in sorted(codes.items()))


def unnamed(codes):
    """What has no published bucket."""
    known = {code for of in CODES.values() for code in of}
    rest = {code: classes for code, classes in codes.items() if code not in known}
    return f"{total_of(rest):,} more have no such bucket: {listed(rest)}"


def wall(r):
    """From the rates, which are of this population, one program after another."""
    def both(x):
        return f"{published.SCHEDULES / x['per_second']['memory']:.2f} s, of which the proofs of {x['flat']:,} take " \
               f"{x['flat'] / x['per_second']['flat']:.2f} s"

    return shown([(both, r.row("cpu", "soundness/rates"))], "soundness/rates", "processor time, from the rates above; "
                 "ours begins at programs of the published format, in memory, and brings them into another form first; "
                 "the processors differ")
