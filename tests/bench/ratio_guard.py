"""Check whether ratios to bare LangGraph have grown by half since they were recorded."""

from collections.abc import Sequence

from tests.bench.benchmark_page import Row
from tests.bench.measurement import Measurement, median

MAX_GROWTH = 1.5


def too_slow(recorded: Sequence[Row], measurements: Sequence[Measurement]) -> list[str]:
    """Return a sentence for each ratio that is more than `MAX_GROWTH` times the recorded one, that has no record, or
    that is recorded and was not measured."""
    known = {row["what"]: row["median_ratio"] for row in recorded if row["part"] == "ratios"}
    results = [_problem(known.get(metric.what), metric) for metric in measurements]
    deleted = known.keys() - {metric.what for metric in measurements}
    return [*filter(None, results), *(f"{what}: is recorded, and was not measured." for what in sorted(deleted))]


def _problem(recorded: float | None, measurement: Measurement) -> str:
    """Describe the problem. Empty means that the ratio is within its limit."""
    if recorded is None:
        return f"{measurement.what}: no ratio is recorded. Record one with `python -m tests.bench ratios --write`."
    if (now := median(measurement.ratio)) <= MAX_GROWTH * recorded:
        return ""
    return (
        f"{measurement.what}: {now:.2f} times the CPU time of bare LangGraph, {recorded:.2f} when recorded. "
        f"At most {MAX_GROWTH} times the recorded ratio is accepted; find what made it slower."
    )
