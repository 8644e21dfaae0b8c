"""Writes templates with mistakes in them: whitespace control turned about, words lost, doubled and exchanged.

    python3 mutate.py FOLDER OUT SEED COUNT     # OUT is then a folder for render.py

FOLDER holds templates, NAME.jinja. Most of what comes out fails somewhere, and where it does is to be the same.
"""

import pathlib
import random
import re
import sys

INSERTED = ["\n", " ", "not ", '"x"', "|", "[0]", ".x", "(", ")", "none"]
LONGEST = 12000  # characters of a template that is taken


def begin(draw, mark):
    """The beginning of a tag, perhaps with another sign."""
    signs = ["", "-"] if mark.startswith("{{") else ["", "-", "+"]
    return mark if draw.random() < 0.6 else mark[:2] + draw.choice(signs)


def end(draw, mark):
    signs = ["", "-", "+"] if "%" in mark else ["", "-"]
    return mark if draw.random() < 0.6 else draw.choice(signs) + mark[-2:]


def change(draw, words):
    """One word of a template is lost, put elsewhere, joined by another or exchanged."""
    at, other, kind = draw.randrange(len(words)), draw.randrange(len(words)), draw.random()
    if kind < 0.4:
        del words[at]
    elif kind < 0.7:
        words[at] = words[other]
    elif kind < 0.85:
        words.insert(at, draw.choice(INSERTED))
    else:
        words[at], words[other] = words[other], words[at]


def mutate(draw, text):
    kind = draw.random()
    if kind < 0.5:
        text = re.sub(r"\{[%{#]-?", lambda m: begin(draw, m.group()), text)
        text = re.sub(r"-?[%}]\}(?!\})", lambda m: end(draw, m.group()), text)
    if kind > 0.3:
        words = re.findall(r"\w+|\s+|\W", text)
        for _ in range(draw.choice([1, 1, 2, 4])):
            change(draw, words)
        text = "".join(words)
    return text


def main():
    folder, out, seed, count = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
    draw = random.Random(seed)
    templates = [(f.stem, f.read_text()) for f in sorted(folder.glob("*.jinja"))]
    templates = [(name, text) for name, text in templates if len(text) <= LONGEST]
    out.mkdir(exist_ok=True)
    for i in range(count):
        name, text = draw.choice(templates)
        (out / f"{i:04d}_{name}.jinja").write_text(mutate(draw, text))


if __name__ == "__main__":
    main()
