"""What the flags accept that several scripts have. Needs the standard library alone."""

import argparse
import math


def gpus(text):
    """Numbers of GPUs: those of 0,1."""
    numbers = text.split(",")
    if not all(n.isascii() and n.isdigit() for n in numbers) or len(set(map(int, numbers))) < len(numbers):
        raise argparse.ArgumentTypeError(f"{text!r}: want numbers of GPUs with commas between them, each once, as in "
                                         "0,1")
    return [int(n) for n in numbers]


def seconds(text):
    try:
        number = float(text)
    except ValueError:
        number = 0
    if not 0 < number < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r}: want seconds, more than 0")
    return number
