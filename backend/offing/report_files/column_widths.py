"""How the columns of a table divide the width of the page. Lengths and widths have the same unit, whichever it is."""

from collections.abc import Sequence
from math import sqrt


def divide_width(
    least: Sequence[float], most: Sequence[float], totals: Sequence[float], available: float
) -> list[float]:
    """Return the width of each column.

    `least` is what the widest word of each column needs, `most` what its longest cell needs on one line, and `totals`
    the sum of its cells on one line. A column gets `most` if the page is wide enough for all. Otherwise each gets at
    least its widest word, and what is left goes to those that need more.
    """
    if sum(most) <= available:
        return list(most)
    if sum(least) >= available:
        return [width * available / sum(least) for width in least]
    return _fill(least, most, [_weigh(total, longest) for total, longest in zip(totals, most, strict=True)], available)


def _weigh(total: float, longest: float) -> float:
    """Return the share that a column asks for. A column with one long cell among empty ones asks for some, too."""
    return sqrt(max(total, 1.0) * longest)


def _fill(least: Sequence[float], most: Sequence[float], weights: Sequence[float], available: float) -> list[float]:
    """Distribute what is left by weight. None gets more than `most`."""
    widths = list(least)
    growing: list[int] = list(range(len(least)))
    while growing:
        left_over, weight = available - sum(widths), sum(weights[column] for column in growing)
        shares = {column: left_over * weights[column] / weight for column in growing}
        done = [column for column in growing if most[column] - widths[column] <= shares[column]]
        for column in done or growing:
            widths[column] = most[column] if done else widths[column] + shares[column]
        growing = [column for column in growing if column not in done] if done else []
    return widths
