"""Keeps invocations apart that would disturb each other. Needs the standard library alone, and must not know what they
do.
"""

import contextlib
import fcntl
from pathlib import Path


class InUse(Exception):
    """Another invocation, or another user, has what this one needs."""


@contextlib.contextmanager
def sole_use(work, instead="give another directory with --work"):
    """Keeps other invocations out of a directory: they would replace what this one runs."""
    work = Path(work)
    work.mkdir(parents=True, exist_ok=True)
    with open(work / ".lock", "w", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise InUse(f"{work} is in use by another invocation; wait for it, or {instead}") from None
        yield
