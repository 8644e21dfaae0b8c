"""Keeps invocations apart that would disturb each other. Needs the standard library alone, and must not know what they
do.
"""

import contextlib
import fcntl
import os
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


@contextlib.contextmanager
def leading(link, to):
    """Has a link lead to a directory. Invocations that want it to lead there share it; those that want it to lead
    elsewhere are refused as long as anyone has it."""
    lock = link.with_name(link.name + ".lock")
    try:
        file = open(lock, "a", encoding="utf-8")
    except OSError as e:
        raise InUse(f"{lock} cannot be opened: {e.strerror}; want it removed by the user who has it") from None
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pass  # the invocation that holds the lock has set the link
        else:
            point(link, to)
        fcntl.flock(file, fcntl.LOCK_SH)  # for which nobody waits long: the link is set in a moment
        if (there := os.readlink(link)) != str(to):
            raise InUse(f"{link} leads to {there}, and an invocation there uses it; it has to lead to {to}: wait for "
                        "that invocation")
        yield


def point(link, to):
    """Has a link lead to a directory that nobody else uses."""
    if link.is_symlink() and os.readlink(link) == str(to):
        return
    if os.path.lexists(link) and not link.is_symlink():
        raise InUse(f"{link} is no link; want it moved away: it has to lead to {to}")
    try:
        link.unlink(missing_ok=True)
        link.symlink_to(to)
    except OSError as e:
        raise InUse(f"{link} cannot be made to lead to {to}: {e.strerror}; want it removed by the user who has "
                    "it") from None
