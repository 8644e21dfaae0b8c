"""amkc and llama.cpp on the same GGUF files and one GPU, interleaved.

    python3 bench/llama_cpp.py STEP FILE.gguf[=BUILD]... [--out ROWS.json]

STEP is bench/llama_step.cc, built against llama.cpp (`make llama-step`); BUILD is what amkc made of the file, and
without one llama.cpp is timed alone. Every round measures each in turn, at one position, as docs/bench.md says for
amkc: medians of launches of 16 tokens. amkc's count if the check with which bench begins has passed.
Before that both read the same tokens, and how far apart their logits are is reported: llama.cpp rounds activations to 8
bits.

Needs numpy, and the tools of `make results`: amkc and device, by --amkc and --device.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from peer import Peer, PeerFailed
from turns import kept
from workshop import Budget, StepFailed, last_object

STEPS = 16  # tokens between two clocks, for a launch of ours and for steps of llama.cpp
IDS = [(7919 * i + 1) % 509 for i in range(24)]
SAME = 0.25  # of the RMS of the logits: two models that are not the same differ by 1.4
OPEN_SECONDS, ASK_SECONDS = 120, 60


class Pair:
    """A file, llama.cpp with it open, and the build that amkc made of it."""

    def __init__(self, text, options, folder):
        self.file, _, build = text.partition("=")
        self.build, self.o, self.folder = build, options, Path(folder)
        self.row = {"file": Path(self.file).name, "bytes": Path(self.file).stat().st_size, "position": options.position,
                    "findings": [], "llama_us": [], "amkc": []}
        self.peer = Peer([options.step, self.file], self.folder / f"{Path(self.file).stem}.log", Budget())

    def ask(self, request, seconds):
        try:
            return self.peer.ask(request, seconds)
        except PeerFailed as e:
            self.row["findings"].append(f"llama.cpp: {e}")
            return None

    def compare(self):
        """Opens llama.cpp, and holds the logits of both together."""
        theirs, ours = self.folder / "theirs.f32", self.folder / "ours.npy"
        answer = self.ask({"do": "logits", "ids": IDS, "out": str(theirs)}, OPEN_SECONDS)
        if answer is None or not self.build:
            return
        done = subprocess.run([self.o.amkc, "logits", self.build, "--device", "cuda", "-o", str(ours), "--ids",
                               ",".join(map(str, IDS))], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            self.row["findings"].append(f"amkc logits: {done.stderr.strip()[-400:]}")
            return
        a, b = np.load(ours).astype(np.float64), np.fromfile(theirs, np.float32).reshape(-1, answer["vocab"])
        apart = np.sqrt(((a - b) ** 2).mean(1) / (a**2).mean(1))
        self.row |= {"logits_apart": {"median": float(np.median(apart)), "largest": float(apart.max())},
                     "same_argmax": int((a.argmax(1) == b.argmax(1)).sum()), "of": len(IDS)}
        if not apart.max() < SAME:
            self.row["findings"].append(f"logits are {apart.max():.2g} of their RMS apart")

    def round(self):
        answer = self.ask({"do": "timed", "position": self.o.position, "steps": STEPS, "launches": self.o.launches,
                           "warm_up": 5}, ASK_SECONDS)
        if answer:
            self.row["llama_us"].append(answer["us"])
        if not self.build:
            return
        done = subprocess.run([self.o.device, self.build, "bench", "--json", "--position", str(self.o.position),
                               "--steps-per-launch", str(STEPS), "--launches", str(self.o.launches)],
                              capture_output=True, text=True, check=False)
        try:
            report = last_object(done.stdout)
        except StepFailed:
            self.row["findings"].append(f"bench: {done.stderr.strip()[-400:]}")
            return
        if not report["check"]["passed"]:
            self.row["findings"].append(f"check: {report['check']['failures'][0]}")
            return
        self.row["amkc"].append(kept(report))

    def judged(self):
        """The row, with the medians of rounds."""
        row = self.row
        if row["llama_us"]:
            row["llama_median_us"] = float(np.median([us["median"] for us in row["llama_us"]]))
        if row["amkc"]:
            row["amkc_median_us"] = float(np.median([r["latency_us"]["median"] for r in row["amkc"]]))
            row["share_of_ceiling"] = float(np.median([r["share_of_ceiling"] for r in row["amkc"]]))
            if row["llama_us"]:
                row["times"] = row["llama_median_us"] / row["amkc_median_us"]
        row["passed"] = not row["findings"]
        return row


def said(row):
    text = f"{row['file']:24} llama.cpp {row.get('llama_median_us', float('nan')):8.1f} us"
    if "amkc_median_us" in row:
        text += f"  amkc {row['amkc_median_us']:8.1f} us, {row['share_of_ceiling']:.1%} of its ceiling"
    if "times" in row:
        text += f", {row['times']:.2f} x"
    if "logits_apart" in row:
        text += (f"  logits {row['logits_apart']['median']:.3f} apart, {row['logits_apart']['largest']:.3f} at most, "
                 f"{row['same_argmax']} of {row['of']} argmax the same")
    return "\n    ".join([text, *row["findings"]])


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("step", metavar="STEP")
    p.add_argument("pairs", metavar="FILE[=BUILD]", nargs="+")
    p.add_argument("--amkc", default="./amkc")
    p.add_argument("--device", default="./device")
    p.add_argument("--position", type=int, default=128)
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--launches", type=int, default=40)
    p.add_argument("--out", help="rows as JSON")
    options = p.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        pairs = [Pair(text, options, folder) for text in options.pairs]
        for pair in pairs:
            pair.compare()
        for _ in range(options.rounds):
            for pair in pairs:
                pair.round()
        for pair in pairs:
            pair.peer.close()
        rows = [pair.judged() for pair in pairs]
    for row in rows:
        print(said(row))
    if options.out:
        Path(options.out).write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    return 0 if all(row["passed"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
