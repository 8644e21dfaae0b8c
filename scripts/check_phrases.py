#!/usr/bin/env python3
"""Fails if documents, comments or messages use a phrase of the list below, and says what to write instead.

The list has phrases that this project has outgrown: grammatical, and not the language of the field. A pattern refuses
what is wrong wherever it stands, and no correct English. Scanned are Markdown, comments and strings of Go, and comments
of the device runtime and of templates. Test data, results and pages written by programs are exempt, and so is the first
word of a Go comment above a declaration, which is a name.
"""

import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

# A blank stands for any white space. What is written instead follows.
PHRASES = (
    (r"\bhand(s|ed|ing)?( (it|its own|them|nothing|something|anything|rows?|(a|the) \w+))? over\b",
     "publish; of arguments, pass"),
    (r"\bso many(?!( \w+){0,3} that\b)", "n, that many, a number of"),
    (r"\bby (itself|themselves)\b", "on its own, alone, separately"),
    (r"\bbeside\b(?!-)", "alongside, next to, besides, compared with"),
    (r"\b(tokens?|texts?|prompts?|steps?|stages?|rows?|words?|marks?|calls?|commas?|branch(es)?|norms?|ids?|positions?"
     r"|ends?|one|those|what is|comes|stands?|right|appended|directly|goes on|one another|each other) behind\b",
     "after, later than"),
    (r"\blies? (in|on) (the )?(shared |global )?(memory|registers?|pages?|disk|blocks|chunks|files?)\b",
     "is in, is stored in, is laid out"),
    (r"\b(is|are|was|were|been|be) given up\b", "is cancelled, aborted, released"),
    (r"\bgiv(es?|ing) the \w+ up\b|\bgives? up what\b", "release, cancel, abort"),
    (r"\bwhoever\b", "name it: anyone who, a client that"),
    (r"\bin the way of (?=[A-Z])", "like, compatible with"),
    (r"\bfor want of\b", "for lack of, without"),
    (r"\blook-ups?\b", "lookup; of drafts, n-gram"),
    (r"\brow of a pass\b", "a token"),
    (r"\b(is|are) none of (?=\w)", "is not one of"),
    (r"\b(what|who) is no (?!longer|more|less|further)\w", "anything but a, not a; of numbers, NaN"),
    (r"\bin the place of\b", "instead of"),
    (r"\b(tasks?|op|view|clock|segment|exchange) at hand\b", "the current"),
    (r"\b(it|that|which|this|one|[\"'`%]) (is|are) no "
     r"(?!longer|more|less|further|matter|other|better|worse|larger|smaller|faster|slower|shorter|wider|way|reason|need"
     r"|different|such)\w", "is not a"),
    (r"\bof which there (is|are)\b", "turn the clause around: with n of them"),
    (r"\bby way of\b", "through"),
    (r"\bfor ever\b", "forever"),
    (r"\b(is|are) under way\b", "is in flight, is running"),
    (r"\b(comes?|came|coming) to nothing\b", "is rejected, is discarded"),
    (r"\bhands? on (no|a|the) \w+\b", "publish, pass on"),
    (r"\bhandovers?\b", "exchange"),
    (r"\b(that|which|it|they) (is|are) none\b(?! of)", "is not a, does not exist; of numbers, NaN"),
    (r"\banew\b", "again; of a file, rewrite"),
    (r"\bcarr(y|ies|ied|ying)( (it|them|(a|an|the) \w+))? out\b", "run, compute, make"),
    (r"\b(dealt|deals?) out\b", "distribute, divide, share"),
    (r"\b(is|are|was|were|be|been) (not )?held to\b", "is compared with, is checked against, is constrained to"),
)

EXEMPT = ("docs/results/", "LICENSE")


def compiled(pattern):
    return re.compile(pattern.replace(" ", r"\s+"), 0 if "[A-Z]" in pattern else re.I)


LIST = [(compiled(pattern), instead) for pattern, instead in PHRASES]
GO = re.compile(r'"(?:\\.|[^"\\\n])*"|`[^`]*`|\'(?:\\.|[^\'\\\n])+\'|//[^\n]*(?:\n[ \t]*//[^\n]*)*|/\*.*?\*/', re.S)


def prose(path, text):
    """The pieces of a file that are for readers, each with its place. A piece is as long as it is in the file."""
    if path.endswith(".md"):
        blank = lambda m: re.sub(r"[^\n]", " ", m[0])  # noqa: E731
        text = re.sub(r"(?ms)^ *```.*?^ *```|`[^`\n]*`|\]\([^)\s]*\)|^\[[\w-]+\]: .*$", blank, text)
        for m in re.finditer(r"[^\n]+(?:\n(?!\s*\n)[^\n]+)*", text):
            yield m.start(), m[0]
    else:
        for m in GO.finditer(text):
            piece = m[0]
            if piece.startswith("//"):
                piece = re.sub(r"(?m)^\s*//", lambda c: c[0].replace("/", " "), piece)
                if path.endswith(".go") and not text[text.rfind("\n", 0, m.start()) + 1:m.start()].strip():
                    piece = re.sub(r"\A\s*\w+", lambda w: " " * len(w[0]), piece)
            elif path.endswith((".cuh", ".tmpl")):
                continue
            else:
                piece = re.sub(r'\bjson:"[^"]*"', lambda name: " " * len(name[0]), piece)
            yield m.start(), piece


def found(path, text):
    """The phrases that a file uses: lines, what stands there, and what to write instead."""
    if path.endswith(".go"):  # strings that are concatenated are one, and \v in them is the end of a line
        text = re.sub(r'"[ \t]*\+\s*"', lambda m: "\v" * m[0].count("\n"), text)
    for at, piece in prose(path, text):
        for pattern, instead in LIST:
            for m in pattern.finditer(piece):
                before = text[:at] + piece[:m.start()]
                yield 1 + before.count("\n") + before.count("\v"), " ".join(m[0].split()), instead


def scanned(path):
    return path.endswith((".md", ".go", ".cuh", ".tmpl")) and "testdata/" not in path and not path.startswith(EXEMPT)


def main() -> int:
    out = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    bad, checked = [], 0
    for path in filter(scanned, out.stdout.splitlines()):
        if not os.path.exists(os.path.join(ROOT, path)):
            continue
        checked += 1
        with open(os.path.join(ROOT, path), encoding="utf-8") as f:
            faults = sorted(found(path, f.read()))
        bad += [f"{path}:{line}: {phrase!r}: write {instead}" for line, phrase, instead in faults]
    print("\n".join(bad) if bad else f"{checked} files, no phrase of the list")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
