"""The files of docs/results: GPU.json holds the rows of a GPU, and GPU.md shows them.

Needs the standard library alone, and must not know how a row was measured.
"""

import contextlib
import fcntl
import json
import os
import re
import string
from datetime import datetime, timezone
from pathlib import Path

from tables import CORRECTNESS, FROZEN, TABLES

SCHEMA = "amkc.results/1"
IDENTITY = ("amkc", "gpu")  # facts of an environment that make a row another row

# The defaults of attention so far, as far as measurements have changed them; a row has the number of its own.
DEFAULTS = ("16 splits of every context from position 512 on",
            "8, 16 or 32 splits by the kv heads and the position (knobs.md, tiling.attention)")
UNCHANGED_BELOW = 512  # up to this position neither splits the context


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
        raise Damaged(f"{path}: byte {e.start} is not UTF-8; want JSON, as a script of bench writes it") from None
    if not isinstance(data, dict):
        raise Damaged(f"{path}: it has a {type(data).__name__}; want an object of JSON")
    return data


class Store:
    """The rows of one JSON file, by id. A row is saved as soon as it is put."""

    def __init__(self, path):
        self.path, self.sections = Path(path), [*TABLES, *FROZEN]
        self.read()

    def read(self):
        self.environments, self.rows = {}, {}
        if self.path.exists():
            data = load(self.path)
            if data.get("schema") != SCHEMA:
                raise Damaged(f"{self.path}: schema {data.get('schema')!r}; {SCHEMA!r} is needed")
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
        return bool(row and row["passed"] and all(made.get(fact) == environment.get(fact) for fact in IDENTITY))

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
        data = {"schema": SCHEMA, "environments": {k: v for k, v in self.environments.items() if k in used},
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


def table(titles, lines):
    def line(cells):
        return "| " + " | ".join(" ".join(str(c).split()).replace("|", "\\|") for c in cells) + " |"
    return [line(titles), "|" + "---|" * len(titles), *map(line, lines)]


def outcomes(rows):
    """How many rows pass, fail, and were not run."""
    passed, failed = sum(r["passed"] is True for r in rows), sum(r["passed"] is False for r in rows)
    return passed, failed, len(rows) - passed - failed


def shown(value):
    """A value as format strings show it: what is absent has no key, and a list that says how is by that."""
    if isinstance(value, dict):
        return {k: shown(v) for k, v in value.items() if v is not None}
    if isinstance(value, list) and value and all(isinstance(e, dict) and "how" in e for e in value):
        return {e["how"]: shown(e) for e in value}
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else value


def cell(form, row):
    """A format string filled in with the fields of a row; nothing if the row lacks one of them."""
    try:
        return form.format_map(shown(row))
    except KeyError:
        return ""


def earlier(row):
    """Whether a row was measured with earlier defaults that can differ from today's there. Builds for passes of several
    sequences have always had the same."""
    far = row["section"] == "soak" or row.get("position", 0) >= UNCHANGED_BELOW
    return far and row.get("defaults", 1) < len(DEFAULTS) and row.get("sequences", 1) == 1


def never_made(planned, made):
    """How many rows of each section were planned and never made, in words."""
    missing = [i.partition("/")[0] for i in planned if i not in made]
    return ", ".join(f"{missing.count(section)} of `{section}`" for section in dict.fromkeys(missing))


def anchor(title):
    """What a link to a heading says, as GitHub spells it."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def made_with(environments):
    """What the rows were made with, in words. A row of the JSON file names its own by letter."""
    facts = {fact: list(dict.fromkeys(e[fact] for e in environments if fact in e))
             for fact in dict.fromkeys(f for e in environments for f in e)}
    builds = len(facts.pop("amkc", ()))
    return "; ".join([*(f"{fact} {' or '.join(map(str, values))}" for fact, values in facts.items()),
                      f"builds of amkc: {builds}"])


def page(store, planned=()):
    """The page of a GPU. It says how many of the planned ids were never made."""
    rows = [r for r in store.ordered() if r["section"] in TABLES]
    sections = {name: own for name in sorted(TABLES, key=lambda name: name in CORRECTNESS)
                if (own := [r for r in rows if r["section"] == name])}
    passed, failed, not_run = outcomes(rows)
    out = [f"# Results: {store.path.stem}", "",
           f"Written by `bench/results.py --render` from [{store.path.name}]({store.path.name}); do not edit. "
           "[How to make rows again](README.md).", "",
           f"{passed} rows pass, {failed} fail, {not_run} were not run."]
    if missing := never_made(planned, store.rows):
        out.append(f"Planned and never made: {missing}.")
    if n := sum(map(earlier, rows)):
        out.append(f"{n} rows were measured with earlier defaults, which can differ there: {'; '.join(DEFAULTS[:-1])}.")
    out += [f"Made with: {made_with(store.environments.values())}.", ""]
    out += table(["rows", "section", "make again"],
                 [[len(own), f"[{TABLES[name].title}](#{anchor(TABLES[name].title)})",
                   f"`python3 bench/results.py --section {name}`"] for name, own in sections.items()])
    for name, own in sections.items():
        title, about, columns = TABLES[name]
        result = [] if all(r["passed"] for r in own) else ["result"]
        out += ["", f"## {title}", "", about, ""]
        out += table([f"{name}/", *columns, *result],
                     [[r["id"].partition("/")[2], *(cell(form, r) for form in columns.values()),
                       *(outcome(r) for _ in result)] for r in own])
    return "\n".join(out) + "\n"


def stores(directory):
    """The JSON files of a directory that hold rows."""
    return [Store(path) for path in sorted(Path(directory).glob("*.json"))
            if str(load(path).get("schema")).startswith(SCHEMA.partition("/")[0] + "/")]


def render(directory, planned=lambda name: ()):
    """Writes the page of each JSON file of a directory that holds rows, and returns their paths. planned gives the ids
    that are planned for a GPU, by its name."""
    pages = {store.path.with_suffix(".md"): page(store, planned(store.path.stem)) for store in stores(directory)}
    for path, text in pages.items():
        path.write_text(text, encoding="utf-8")
    return list(pages)
