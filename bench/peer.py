"""A child process that answers requests, one JSON object a line, each within a time limit.

Needs the standard library alone, and must not know what is asked.
"""

import json
import os
import select
import signal
import subprocess
import threading
import time

from workshop import OutOfTime, first_complaint, spell

CLOSE_SECONDS = 10


class PeerFailed(Exception):
    """No answer, or one that says what went wrong."""


class Peer:
    """The child of a command. What it prints on stderr is kept in the file log, and is read when it dies."""

    def __init__(self, args, log, budget, env=None):
        self.args, self.log, self.budget = args, log, budget
        self.rest, self.closing = b"", threading.Lock()
        with open(log, "wb") as stderr:
            self.child = subprocess.Popen(args, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr, env=env,
                                          bufsize=0,
                                          start_new_session=True)

    def ask(self, request, seconds):
        """The answer to a request. PeerFailed says why there is none; a peer that was late is ended. OutOfTime when the
        budget ends sooner than the limit."""
        left = self.budget.remaining()
        limit = time.monotonic() + min(seconds, left)
        try:
            self.child.stdin.write(json.dumps(request).encode() + b"\n")
            while b"\n" not in self.rest:
                ready, _, _ = select.select([self.child.stdout], [], [], max(0, limit - time.monotonic()))
                if not ready:
                    self.close(now=True)
                    if left < seconds:
                        raise OutOfTime
                    raise PeerFailed(f"no answer to {request['do']!r} within {seconds:g} s")
                part = os.read(self.child.stdout.fileno(), 1 << 16)
                if not part:
                    raise BrokenPipeError
                self.rest += part
        except (BrokenPipeError, ValueError):  # it has ended, before this request or because of it
            self.close(now=True)
            with open(self.log, encoding="utf-8", errors="replace") as f:
                raise PeerFailed(f"{spell(self.args)} ended with {self.child.returncode}: "
                                 f"{first_complaint(f.read())}") from None
        line, _, self.rest = self.rest.partition(b"\n")
        answer = json.loads(line)
        if not answer["ok"]:
            raise PeerFailed(answer["error"])
        return answer

    def close(self, now=False):
        """Ends the child and its children; unless now, it may end by itself first. Of several threads, one does."""
        with self.closing:
            if self.child.stdin.closed:
                return
            self.child.stdin.close()
            try:
                self.child.wait(0 if now else CLOSE_SECONDS)
            except subprocess.TimeoutExpired:
                pass
            try:
                os.killpg(self.child.pid, signal.SIGKILL)  # whoever is left of its group
            except ProcessLookupError:
                pass
            self.child.wait()
            self.child.stdout.close()
