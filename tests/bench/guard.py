"""Whether ratios to bare LangGraph have grown by half since they were recorded."""

from collections.abc import Sequence

from tests.bench.figures import Figure, median
from tests.bench.page import Row

MAX_GROWTH = 1.5


def too_slow(recorded: Sequence[Row], figures: Sequence[Figure]) -> list[str]:
    """Return a sentence per ratio that is more than `MAX_GROWTH` times the recorded one, or that has no record, and per
    recorded one that was not measured."""
    known = {row["what"]: row["median_ratio"] for row in recorded if row["part"] == "ratios"}
    found = [_problem(known.get(figure.what), figure) for figure in figures]
    gone = known.keys() - {figure.what for figure in figures}
    return [*filter(None, found), *(f"{what}: is recorded, and was not measured." for what in sorted(gone))]


def _problem(recorded: float | None, figure: Figure) -> str:
    """Empty: the ratio is within its limit."""
    if recorded is None:
        return f"{figure.what}: no ratio is recorded. Record one with `python -m tests.bench ratios --write`."
    if (now := median(figure.ratio)) <= MAX_GROWTH * recorded:
        return ""
    return (
        f"{figure.what}: {now:.2f} times the processor time of bare LangGraph, {recorded:.2f} when it was recorded. "
        f"At most {MAX_GROWTH} times the recorded ratio is accepted; find what made it slower."
    )
