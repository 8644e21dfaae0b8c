#!/usr/bin/env python3
"""Runs its arguments as a task of a Ray cluster, for --via and --build-via of amkc search:

    amkc search MODEL -o DIR --trials 200 --device cuda --target h100 --jobs 8 --via 'ray_run.py' \\
        --build-via 'ray_run.py --gpus 0'

amkc, the model, the campaign, the key of verdicts and the cache of builds (AMKC_CACHE) are where all nodes have them.
"""

import argparse
import os
import subprocess
import sys

import ray


@ray.remote(max_retries=0)  # amkc search begins it again
def run(command, environment):
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    return done.stdout, done.stderr, done.returncode


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gpus", type=float, default=1)
    parser.add_argument("command", nargs=argparse.REMAINDER)
    args = parser.parse_args()
    ray.init(log_to_driver=False, logging_level="ERROR")
    # The GPU of a task is for Ray to say.
    environment = {k: v for k, v in os.environ.items() if k != "CUDA_VISIBLE_DEVICES" or not args.gpus}
    out, err, code = ray.get(run.options(num_gpus=args.gpus).remote(args.command, environment))
    sys.stdout.write(out)
    sys.stderr.write(err)
    return code


if __name__ == "__main__":
    sys.exit(main())
