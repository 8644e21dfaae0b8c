#!/usr/bin/env python3
"""Runs its arguments in a pod of Kubernetes, for --via and --build-via of amkc search:

    amkc search /shared/model -o /shared/campaign --trials 200 --device cuda --target h100 --key /key/verdict.key \\
        --jobs 8 --via 'pod.py' --build-via 'pod.py --gpus 0'

pod.json, alongside, is the pod. Fill in its image, which has nvcc and g++, the claim of the volume that all pods mount
and that holds amkc, the model, the campaign and the cache of builds, and the secret with the key of the campaign. What
runs the search mounts the same at the same paths. A pod that is evicted ends without a verdict, and is begun again.
"""

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path


def kubectl(*args, text=None):
    return subprocess.run(["kubectl", *args], input=text, stdout=subprocess.PIPE, text=True, check=True).stdout


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gpus", type=int, default=1)
    parser.add_argument("command", nargs=argparse.REMAINDER)
    args = parser.parse_args()
    pod = json.loads(Path(__file__).with_name("pod.json").read_text(encoding="utf-8"))
    container = pod["spec"]["containers"][0]
    container["command"] = args.command
    container["resources"]["limits"] = {"nvidia.com/gpu": str(args.gpus)} if args.gpus else {}
    name = kubectl("create", "-o", "name", "-f", "-", text=json.dumps(pod)).strip()
    try:
        while (phase := kubectl("get", name, "-o", "jsonpath={.status.phase}")) not in ("Succeeded", "Failed"):
            time.sleep(1)
        sys.stdout.write(kubectl("logs", name))
    finally:
        kubectl("delete", "--wait=false", name)
    return 0 if phase == "Succeeded" else 1


if __name__ == "__main__":
    sys.exit(main())
