#!/usr/bin/env python3
"""Compares steps of builds of this amkc with those of another one, on the GPU of this machine.

    python3 bench/versions.py DIR                        1B, 8B and the 0.6B shape in bf16, at 128 and 8,192
    python3 bench/versions.py DIR --weights int4 --model llama-3.2-1b --openings 8

DIR has the tools of the other one, by `make results-tools` there: each amkc makes its builds, and each bench/device
opens them, so that their ABIs may differ. Builds are opened by turns: this one's, the other's, and the other's again as
if it were a third, whose distance from the other's says what a difference means. Each opening begins with the check of
its build. It needs an NVIDIA GPU, nvcc, numpy, and Go, or else --tools, as bench/results.py does.
Exit codes: 0 no step takes longer than the slower of the twins by more than 0.3 %; 1 some do, or were not measured; 2
bad usage or a broken environment.
"""

import argparse
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import machine

machine.need_numpy()

import numpy as np

import turns
from accuracy import SEED
from comparing import MODELS
from workshop import Budget, Case, StepFailed, Workshop

NEW, FORMER, TWIN = WHO = ("new", "former", "twin")
POSITIONS = (128, 8192)
MAX_SEQ = 8448
LAUNCHES = 12  # an opening and position
SLOWER = 1.003  # than the slower of the twins


def parse(argv):
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("former", type=Path, metavar="DIR", help="amkc, device and dequantised of the other version")
    p.add_argument("--model", action="append", choices=MODELS, help="of testdata/configs; may be repeated")
    p.add_argument("--weights", default="", help="how matrices are stored, as amkc takes it (default: bf16)")
    p.add_argument("--openings", type=int, default=5, metavar="N", help="of each (default: 5)")
    p.add_argument("--target", default="auto", help="as for amkc (default: the GPU of this machine)")
    p.add_argument("--tools", type=Path, metavar="DIR", help="prebuilt amkc and device (default: go builds them)")
    p.add_argument("--work", type=Path, default=Path("build/versions"), metavar="DIR",
                   help="where builds go (default: build/versions)")
    args = p.parse_args(argv)
    if args.openings < 1:
        p.error(f"--openings {args.openings}: want 1 or more")
    args.model = args.model or list(MODELS)
    return args


def measure(shops, case, openings):
    """Microseconds of each opening, by position and by who; the first thing that is wrong ends it."""
    directories = {who: shop.finish(case) for who, shop in shops.items()}
    for shop in shops.values():
        shop.settle()
    us = {p: {who: [] for who in WHO} for p in POSITIONS}
    for k in range(openings):
        for who in WHO[k % len(WHO):] + WHO[:k % len(WHO)]:
            entrant = {who: turns.Entrant(directories[who])}
            for (_, p), (r,) in turns.take_turns(shops[who], entrant, POSITIONS, 1, LAUNCHES).items():
                if r["findings"]:
                    raise StepFailed(f"{who} at {p}: {r['findings'][0]}")
                us[p][who].append(r["latency_us"]["median"])
    return us


def judge(us):
    """A line for a position, and whether a step takes no longer than it did."""
    new, former, twin = (float(np.median(us[who])) for who in WHO)
    percent = 100 * (new / ((former + twin) / 2) - 1)
    return (f"{new:.1f} us, former {former:.1f} and {twin:.1f}: {percent:+.2f} %; the twins differ by "
            f"{100 * abs(twin / former - 1):.2f} %"), new <= SLOWER * max(former, twin)


def main(argv=None):
    args = parse(argv)
    former, own = args.former.resolve(), args.tools and args.tools.resolve()
    os.chdir(machine.REPO)
    machine.number_as_listed()
    shops, good = {}, True
    try:
        with machine.sole_use(args.work):
            for who, tools in ((NEW, machine.Tools(own, args.work)), (FORMER, machine.Tools(former))):
                machine.need_gpu(machine.environment(tools))
                shops[who] = Workshop(tools, args.work.resolve() / who, args.target, 2, Budget())
            shops[TWIN] = shops[FORMER]
            cases = [Case(f"testdata/configs/{m}", "bf16", SEED, MAX_SEQ, weights=args.weights) for m in args.model]
            for case in cases:
                for who in (NEW, FORMER):
                    shops[who].start(case)
            for case in cases:
                try:
                    lines = {p: judge(us) for p, us in measure(shops, case, args.openings).items()}
                except StepFailed as e:
                    lines = {POSITIONS[0]: (str(e), False)}
                for p, (text, passed) in lines.items():
                    print(f"{case.key} at {p}: {text}{'' if passed else '  FAIL'}", flush=True)
                    good = good and passed
    except (machine.Missing, machine.InUse) as e:
        print(f"versions.py: error: {e}", file=sys.stderr)
        return 2
    finally:
        for shop in shops.values():
            shop.close()
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
