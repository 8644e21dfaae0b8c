"""Ratios of times as text. Needs the standard library alone."""


def interval(ratio):
    """A ratio with its 95 % interval, or nothing if there is none."""
    return f"{ratio['mean']:.4f} ({ratio['low']:.4f} to {ratio['high']:.4f})" if ratio else ""
