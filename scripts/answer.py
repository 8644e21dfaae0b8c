#!/usr/bin/env python3
"""Prints what a terminal showed of a row of first_answer, for picture.py to draw:

    python3 scripts/answer.py docs/results/h100.json pycoder-5m | python3 scripts/picture.py > docs/img/answer.svg

The row is the one that bench/results.py has made of a model. The commands are those that were run, with build/ in the
place of their directory.
"""

import json
import re
import sys


def terminal(row):
    """The lines of the terminal."""
    name = f"example/{row['model']}"
    program = f"build/{row['model']}" if row["launcher"] else "amkc"
    lines = [f"$ amkc {name} -o build/"]
    for line in row["compiled"]:
        directory = re.match(r"(\S*/build)[/:]", line)
        lines.append(line.replace(directory[1], "build") if directory else line)
    lines += [f"// {row['compile_s']:.0f} s", "",
              f"$ {program} chat --stats" if row["launcher"] else f"$ {program} chat build/ --stats",
              "> " + row["message"], *row["answer"].rstrip().splitlines(), *row["said"],
              f"// {row['first_text_s']:.1f} s from the start of the program to the first text"]
    return lines


def main(argv):
    if len(argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    with open(argv[0], encoding="utf-8") as f:
        rows = json.load(f)["rows"]
    chosen = [r for r in rows if r["section"] == "first_answer" and r["model"] == argv[1] and r["passed"]]
    if not chosen:
        print(f"{argv[0]} has no row of first_answer/{argv[1]}* that has passed", file=sys.stderr)
        return 1
    print("\n".join(terminal(chosen[0])))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
