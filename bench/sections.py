"""What a section of the results consists of. Needs the standard library alone."""

from dataclasses import dataclass
from typing import Callable

from workshop import Case


class NotRun(Exception):
    """Something that this machine does not let one find out; the text says why. Unlike a failure it says nothing of the
    build."""


@dataclass(frozen=True)
class Task:
    """One row: the build that it needs, and a function of the workshop that returns what goes into the row, with
    `passed` and `findings` among it."""

    section: str
    name: str
    case: Case
    run: Callable
    defines: tuple = ()
    also: tuple = ()  # builds that it needs besides: (case, defines) each
    builds: bool = True  # False: the row makes a build of its own, which is a part of what it shows
    seconds: int = 0  # that it takes at least, with its build made; 0: not so long that it matters

    @property
    def id(self):
        return f"{self.section}/{self.name}"
