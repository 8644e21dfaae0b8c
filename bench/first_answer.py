"""Section first_answer: the way of a new user, from a checkpoint in the hub's cache to the answer of a chat.

What is timed are the commands of README.md, as they are typed: amkc ORG/NAME -o build/, and build/NAME chat, or amkc
chat build/ where there is no Go to make an executable with. The download before them is the network's.
"""

import os
import shutil
import signal
import subprocess
import threading
import time
from pathlib import Path

from workshop import (BUILD_SECONDS, RUN_SECONDS, Case, OutOfTime, StepFailed,
                      Task, first_complaint, launcher_name, spell)

SEED = 1
# Checkpoints, and what is said to them. What they lack to be talked to is from bench/spoken.py, and so are random
# weights.
FIRST = ((Case("testdata/models/pycoder-5m", "bf16"), "def fibonacci(n):"),
         (Case("testdata/configs/llama-3.2-1b", "bf16", SEED), "Name three rivers."))
TOKENS = 48
HUB = "example"  # the organisation that the checkpoints are of, in the cache


def first_answer_row(shop, case, message):
    """Compiles a checkpoint of a hub's cache, which is not a row's build, and talks to it."""
    shop.settle()
    work = shop.work / "first_answer" / case.name
    home, out = work / "hub", work / "build"
    name = f"{HUB}/{case.name}"
    revision = home / "hub" / ("models--" + name.replace("/", "--")) / "snapshots" / "main"
    args = [case.model, str(revision)] + (["--weights", str(case.seed)] if case.seed is not None else [])
    shop.log.append(spell(shop.spoken(args)))
    shutil.rmtree(out, ignore_errors=True)
    cache = ["env", f"HF_HOME={home}"]
    compile_args = [str(shop.tools.amkc), name, "-o", str(out), "--target", shop.target]
    begun = time.monotonic()
    shop.log.append(spell([*cache, *compile_args]))
    compiled = shop.execute([*cache, *compile_args], BUILD_SECONDS)
    compile_s = time.monotonic() - begun
    launcher = out / launcher_name(out)
    own = os.access(launcher, os.X_OK)
    chat = ([str(launcher), "chat"] if own else [str(shop.tools.amkc), "chat", str(out), "--device", "cuda"]) + [
        "--max-tokens", str(TOKENS), "--stats"]
    shop.log.append(spell(chat) + f" <<< {message!r}")
    first_s, whole_s, answer, said = converse(shop, chat, message)
    weights = sum(f.stat().st_size for f in revision.glob("*.safetensors"))
    return judge_first_answer({
        "compile_s": compile_s, "first_text_s": first_s, "answer_s": whole_s, "total_s": compile_s + first_s,
        "checkpoint_bytes": weights, "launcher": own, "message": message, "answer": answer,
        "said": said.strip().splitlines()[-1:],
        "compiled": compiled.stdout.splitlines() + compiled.stderr.splitlines()})


def judge_first_answer(r):
    findings = [] if r["answer"].strip() else ["there is no text in the answer"]
    return {"passed": not findings, "findings": findings} | r


def converse(shop, args, message):
    """Says one thing. Returns the seconds from the start of the program to the first text of the answer and to its end,
    the answer, and what is on stderr."""
    left = shop.budget.remaining()
    if left <= 0:
        raise OutOfTime
    limit, begun = min(RUN_SECONDS, left), time.monotonic()
    log = shop.work / "chat.stderr"
    with open(log, "wb") as stderr:
        child = subprocess.Popen(args, env=shop.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr,
                                 start_new_session=True)
    alarm = threading.Timer(limit, lambda: os.killpg(child.pid, signal.SIGKILL))
    alarm.start()
    try:
        child.stdin.write(message.encode() + b"\n")
        child.stdin.close()
        answer, first = b"", None
        while part := os.read(child.stdout.fileno(), 1 << 16):
            if first is None and part.strip():
                first = time.monotonic() - begun
            answer += part
        child.wait()
    finally:
        alarm.cancel()
        child.stdout.close()
    whole = time.monotonic() - begun
    said = log.read_text(encoding="utf-8", errors="replace")
    if whole >= limit:
        if limit < RUN_SECONDS:
            raise OutOfTime
        raise StepFailed(f"{Path(args[0]).name}: no end after {RUN_SECONDS} s")
    if child.returncode != 0:
        raise StepFailed(f"{Path(args[0]).name} exited with {child.returncode}: {first_complaint(said)}")
    return whole if first is None else first, whole, answer.decode("utf-8", "replace"), said


def first_answer():
    return [Task("first_answer", case.key, case, lambda shop, c=case, m=message: first_answer_row(shop, c, m),
                 builds=False)
            for case, message in FIRST]
