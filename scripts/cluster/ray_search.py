#!/usr/bin/env python3
"""A campaign of amkc search on a Ray cluster, round by round:

    ray_search.py [--gpus N] [--cpus N] CAMPAIGN MODEL --trials 200 --device cuda --target h100

What follows CAMPAIGN is what `amkc search plan` takes. The directory CAMPAIGN, the model, the key of verdicts and the
cache of builds (AMKC_CACHE) lie where all nodes have them. Whoever stops this script may start it again: a trial is
there as a whole or not at all, so that a task that Ray runs twice does no harm.
"""

import argparse
import json
import os
import subprocess
import sys

import ray

AMKC = os.environ.get("AMKC", "amkc")


def amkc(*args):
    """Runs `amkc search` and returns its result and its exit code. What it has to say goes to stderr."""
    done = subprocess.run([AMKC, "search", *args, "--json"], stdout=subprocess.PIPE, text=True, check=False)
    return (json.loads(done.stdout) if done.stdout else {}), done.returncode


@ray.remote(max_retries=3)
def work(campaign, index, stage):
    """One stage of one trial of the round: the exit code of `amkc search work`."""
    return amkc("work", "-o", campaign, "--index", str(index), "--stage", stage)[1]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gpus", type=float, default=1, help="for a trial that is measured; 0: predictions")
    parser.add_argument("--cpus", type=float, default=1, help="for a trial that is proved and compiled")
    parser.add_argument("--attempts", type=int, default=3, help="of a round whose tasks failed")
    parser.add_argument("campaign")
    parser.add_argument("plan", nargs=argparse.REMAINDER)
    args = parser.parse_args()
    campaign = os.path.abspath(args.campaign)
    # Predictions build nothing. A GPU stage begins when all of the round is compiled: GPUs wait for no compiler.
    stages = [("judge", {"num_cpus": 1, "num_gpus": args.gpus})]
    if args.gpus:
        stages.insert(0, ("build", {"num_cpus": args.cpus}))
    ray.init()
    while True:
        result, code = amkc("plan", *args.plan, "-o", campaign)
        if code:
            return code
        if not result["planned"]:
            print(result["stop"])
            return 0
        for _ in range(args.attempts):
            for stage, resources in stages:
                ray.get([work.options(**resources).remote(campaign, index, stage)
                         for index in range(len(result["planned"]))])
            if amkc("merge", "-o", campaign)[1] == 0:
                break
        else:
            print(f"a round is not complete after {args.attempts} attempts", file=sys.stderr)
            return 1


if __name__ == "__main__":
    sys.exit(main())
