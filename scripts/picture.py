#!/usr/bin/env python3
"""Draws text from standard input as a terminal window, an SVG on standard output:

    scripts/demo.py --picture | scripts/picture.py > docs/img/demo.svg
"""

import argparse
import html
import sys

CHAR, LINE, PAD = 7.25, 17, 14


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--columns", type=int, default=104)
    args = parser.parse_args()
    lines = []
    for line in sys.stdin.read().expandtabs(4).splitlines():
        while len(line) > args.columns:
            lines.append(line[: args.columns])
            line = "    " + line[args.columns:]
        lines.append(line)
    width, height = int(args.columns * CHAR + 2 * PAD), len(lines) * LINE + 2 * PAD
    print(f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">')
    print(f'<rect width="{width}" height="{height}" rx="8" fill="#16181d"/>')
    print('<g font-family="DejaVu Sans Mono, Menlo, Consolas, monospace" font-size="12" fill="#d7dae0" '
          'xml:space="preserve">')
    for i, line in enumerate(lines):
        colour = (' fill="#8fd694"' if line.startswith("$ ") else
                  ' fill="#8a90a0"' if line.lstrip().startswith("//") else "")
        print(f'<text x="{PAD}" y="{PAD + (i + 1) * LINE - 5}"{colour}>{html.escape(line)}</text>')
    print("</g></svg>")
    return 0


if __name__ == "__main__":
    sys.exit(main())
