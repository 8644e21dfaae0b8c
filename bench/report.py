"""The files of docs/results: NAME.json holds the rows of one machine, README.md shows all of them.

Needs the standard library alone, and must not know how a row was measured.
"""

import contextlib
import fcntl
import json
import os
import string
from datetime import datetime, timezone
from pathlib import Path

from columns import SECTIONS, fixed, percent, plain, scaled, short, span

SCHEMA = "amkc.results/1"
REFERENCE = "h200"  # the GPU whose section comes first: what was aimed for was aimed for there
IDENTITY = ("amkc", "gpu")  # facts of an environment that make a row another row

PREAMBLE = """# Results

Written by `bench/results.py`, which anyone with a GPU can run; do not edit. Every row names the command that made it
and, by letter, what it ran on. The numbers in full, the commands below that command, and everything that was found are
in the JSON files beside this one.
"""


class Damaged(ValueError):
    """A file of docs/results that cannot be read; the text says which one, where, and what is accepted."""


def load(path):
    """What a JSON file has, which is to be an object."""
    try:
        data = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as e:
        raise Damaged(f"{path}: {e.strerror}; want a file of JSON") from None
    except json.JSONDecodeError as e:
        raise Damaged(f"{path}:{e.lineno}:{e.colno}: {e.msg}; want JSON, as a script of bench writes it") from None
    except UnicodeDecodeError as e:
        raise Damaged(f"{path}: byte {e.start} is no UTF-8; want JSON, as a script of bench writes it") from None
    if not isinstance(data, dict):
        raise Damaged(f"{path}: it has a {type(data).__name__}; want an object of JSON")
    return data


class Store:
    """The rows of one JSON file, by id. A row is saved as soon as it is put. sections are in the order of the file, and
    identity names the facts of an environment that make a row another row."""

    def __init__(self, path, schema=SCHEMA, sections=(), identity=IDENTITY):
        self.path, self.schema, self.identity = Path(path), schema, identity
        self.sections = list(sections or SECTIONS)
        self.read()

    def read(self):
        self.environments, self.rows = {}, {}
        if self.path.exists():
            data = load(self.path)
            if data.get("schema") != self.schema:
                raise Damaged(f"{self.path}: schema {data.get('schema')!r}; {self.schema!r} is needed")
            try:
                self.environments = dict(data["environments"])
                self.rows = {row["id"]: row for row in data["rows"]}
                odd = next((i for i, row in self.rows.items() if row["environment"] not in self.environments
                            or row["section"] not in self.sections or "passed" not in row), None)
            except (KeyError, TypeError, ValueError) as e:
                raise Damaged(f"{self.path}: {type(e).__name__}: {e}; want environments by letter, and rows that have "
                              "id, section, environment and passed") from None
            if odd is not None:
                raise Damaged(f"{self.path}: row {odd}: want one of the environments of the file, a section of "
                              f"{', '.join(self.sections)}, and passed")

    @contextlib.contextmanager
    def changed(self):
        """The rows as they are in the file now, which is written in the end; nobody else writes it meanwhile."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        directory = os.open(self.path.parent, os.O_RDONLY)
        try:
            fcntl.flock(directory, fcntl.LOCK_EX)
            self.read()
            yield
            self.save()
        finally:
            os.close(directory)

    def done(self, task_id, environment):
        """Whether the task has passed with the same amkc on the same GPU: such a row need not be made again. It keeps
        the environment that it was made in."""
        row = self.rows.get(task_id)
        made = self.environments[row["environment"]] if row else {}
        return bool(row and row["passed"] and all(made.get(fact) == environment.get(fact) for fact in self.identity))

    def put(self, row, environment):
        """Puts a row that was made just now, as far as it replaces the one that is there, and returns whether."""
        row = row | {"made": datetime.now(timezone.utc).isoformat(timespec="microseconds")}
        with self.changed():
            return self.replace(row, environment)

    def take(self, other):
        """Puts the rows of another store, as far as they replace those that are there, and returns how many."""
        with self.changed():
            return sum(self.replace(row, other.environments[row["environment"]]) for row in other.ordered())

    def replace(self, row, environment):
        """Puts a row, and returns whether it did: one that was not run replaces none that was, and none replaces one
        that was made later, since a file that began as a copy of this one has rows of before."""
        here = self.rows.get(row["id"])
        if here:
            runs, ran = row["passed"] is not None, here["passed"] is not None
            older = row.get("made", "") <= here.get("made", "")
            if ran and not runs or ran == runs and older:
                return False
        self.rows[row["id"]] = row | {"environment": self.letter(environment)}
        return True

    def letter(self, environment):
        """The name of an environment: that of an equal one, or the first free letter."""
        for letter, known in self.environments.items():
            if known == environment:
                return letter
        names = (letter + digit for digit in ("", *map(str, range(1, 100))) for letter in string.ascii_uppercase)
        letter = next(name for name in names if name not in self.environments)
        self.environments[letter] = environment
        return letter

    def ordered(self):
        """The rows in the order of the sections, and within one in the order in which they were first made."""
        return sorted(self.rows.values(), key=lambda row: self.sections.index(row["section"]))

    def save(self):
        used = {row["environment"] for row in self.rows.values()}
        data = {"schema": self.schema, "environments": {k: v for k, v in self.environments.items() if k in used},
                "rows": self.ordered()}
        text = json.dumps(data, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
        self.path.parent.mkdir(parents=True, exist_ok=True)
        partial = self.path.with_name("." + self.path.name + ".partial")
        partial.write_text(text, encoding="utf-8")
        os.replace(partial, self.path)


def outcome(row):
    if row["passed"] is None:
        return "not run: " + row["not_run"]
    if row["passed"]:
        return "pass"
    more = f" (and {len(row['findings']) - 1} more)" if len(row["findings"]) > 1 else ""
    return "**FAIL**: " + row["findings"][0] + more


def cell(text):
    return " ".join(str(text).split()).replace("|", "\\|")


def table(titles, lines):
    out = ["| " + " | ".join(titles) + " |", "|" + "---|" * len(titles)]
    return out + ["| " + " | ".join(cell(c) for c in line) + " |" for line in lines]


def stores(directory):
    """The names and rows of the JSON files of a directory that hold rows, that of the reference first."""
    paths = sorted(Path(directory).glob("*.json"), key=lambda path: (path.stem != REFERENCE, path.stem))
    return [(path.stem, Store(path)) for path in paths
            if str(load(path).get("schema")).startswith(SCHEMA.partition("/")[0] + "/")]


def numbers(planned):
    """How many rows of each section are planned, in words."""
    sections = [i.partition("/")[0] for i in planned]
    return ", ".join(f"{sections.count(section)} of `{section}`" for section in dict.fromkeys(sections))


def outcomes(rows):
    """How many rows pass, fail, and were not run."""
    passed, failed = sum(r["passed"] is True for r in rows), sum(r["passed"] is False for r in rows)
    return passed, failed, len(rows) - passed - failed


def overview(chosen):
    """The machines, where there are several."""
    if len(chosen) < 2:
        return []
    lines = [[f"[{name}](#{name})", ", ".join(dict.fromkeys(e.get("gpu", "") for e in store.environments.values())),
              *outcomes(store.ordered())]
             for name, store in chosen]
    return table(["machine", "GPU", "rows that pass", "fail", "were not run"], lines) + [""]


def never_made(planned, made):
    """What was never made, in words: whole sections by their name, and single rows."""
    words = []
    for section in dict.fromkeys(i.partition("/")[0] for i in planned):
        own = [i for i in planned if i.partition("/")[0] == section]
        missing = [i for i in own if i not in made]
        words += [f"all {len(own)} of `{section}`"] if missing == own and len(own) > 1 else [f"`{i}`" for i in missing]
    return ", ".join(words)


def render_store(name, store, planned, explained):
    """A machine's section. What a section of rows shows is said where the first machine has it; explained says which
    one that is."""
    out = [f"## {name}", ""]
    rows = store.ordered()
    passed, failed, not_run = outcomes(rows)
    out += [f"{passed} rows pass, {failed} fail, {not_run} were not run.", ""]
    if planned:
        out += [f"Planned here: {numbers(planned)}."]
        out += [f"Of these never made: {never}.", ""] if (never := never_made(planned, store.rows)) else [""]
    facts = sorted({key for e in store.environments.values() for key in e})
    out += table(["on"] + facts, [[letter] + [e.get(f, "") for f in facts] for letter, e in store.environments.items()])
    for section, (title, rule, columns) in SECTIONS.items():
        chosen = [r for r in rows if r["section"] == section]
        if not chosen:
            continue
        first = explained.setdefault(section, name)
        out += ["", f"### {title}", "", rule if first == name else f"As for {first}, above.", ""]
        titles = ["model", "dtype"] + [c[0] for c in columns] + ["result", "on", "command"]
        out += table(titles, [[r["model"], r["dtype"]] + [c[1](r) for c in columns] +
                              [outcome(r), r["environment"], f"`{r['command']}`"] for r in chosen])
    return out


def render(directory, planned=lambda name: ()):
    """Writes README.md for the JSON files of a directory that hold rows, and returns its path. It names those of the
    ids planned for a file, by its name, that it does not have."""
    readme = Path(directory) / "README.md"
    readme.write_text(text(directory, planned), encoding="utf-8")
    return readme


def text(directory, planned):
    chosen, explained = stores(directory), {}
    out = [PREAMBLE] + overview(chosen)
    for name, store in chosen:
        out += render_store(name, store, planned(name), explained) + [""]
    return "\n".join(out)
