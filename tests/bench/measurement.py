"""A measurement: one value per round, its baseline, and its aim."""

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

Samples = tuple[float, ...]
"""One value per round, in the order of the rounds."""


@dataclass(frozen=True, slots=True)
class Aim:
    """Limits for the median of `Measurement.ours` or, with `of_ratio`, of `Measurement.ratio`."""

    words: str
    at_least: float = -math.inf
    at_most: float = math.inf
    of_ratio: bool = False


@dataclass(frozen=True, slots=True)
class Measurement:
    """One row of the table. `unit` is a key of `UNITS`."""

    what: str
    ours: Samples
    unit: str
    bare: Samples = ()
    """The same without the platform, with one value per round. Empty means that there is no baseline."""
    bare_what: str = ""
    """What `bare` is, if it is not simply the same without the platform."""
    ratios: Samples = ()
    """Empty means `ours` divided by `bare` of each round."""
    ratio_what: str = ""
    """What `ratios` are a share of, such as "of ideal"."""
    aim: Aim | None = None
    note: str = ""
    """An additional note for the reader."""

    @property
    def ratio(self) -> Samples:
        """The ratio of each round. Rounds are paired, because the load of the machine changes between them."""
        return self.ratios or tuple(ours / bare for ours, bare in zip(self.ours, self.bare, strict=False) if bare)

    @property
    def met(self) -> bool | None:
        """Whether the median meets the aim. `None` means that there is no aim."""
        if self.aim is None:
            return None
        value = median(self.ratio if self.aim.of_ratio else self.ours)
        return self.aim.at_least <= value <= self.aim.at_most


UNITS: Mapping[str, tuple[float, str, str]] = {
    "ms": (1e3, ",.1f", " ms"),
    "µs": (1e6, ",.0f", " µs"),
    "s": (1, ",.1f", " s"),
    "/s": (1, ",.0f", ""),
    "tokens/s": (1, ",.0f", " tokens/s"),
    "pages/s": (1, ",.0f", " pages/s"),
    "MB/s": (1, ",.0f", " MB/s"),
    "kB": (1, ",.1f", " kB"),
    "MB": (1, ",.1f", " MB"),
    "GB": (1, ",.2f", " GB"),
    "bytes": (1, ",.1f", " bytes"),
    "%": (1, ".1%", ""),
    "turns": (1, ",.1f", " turns"),
    "count": (1, ",.0f", ""),
    "score": (1, ".3f", ""),
}
"""How values of a unit are rendered: factor, format and suffix. Times are stored in seconds."""


def merged(rounds: Iterable[Sequence[Measurement]]) -> list[Measurement]:
    """Merge the measurements of several rounds of a part, with one list of samples per measurement."""
    results: dict[str, Measurement] = {}
    for metric in (metric for one in rounds for metric in one):
        known = results.get(metric.what)
        results[metric.what] = metric if known is None else _joined(known, metric)
    return list(results.values())


def _joined(known: Measurement, new: Measurement) -> Measurement:
    return replace(known, ours=known.ours + new.ours, bare=known.bare + new.bare, ratios=known.ratios + new.ratios)


def median(values: Sequence[float]) -> float:
    return statistics.median(values)


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value below which `share` of the values lie."""
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def written(values: Samples, unit: str) -> str:
    """Render the median, with minimum and maximum if there are several rounds. A dash means no values."""
    if not values:
        return "-"
    factor, shape, suffix = UNITS[unit]
    middle, minimum, maximum = (f"{value * factor:{shape}}" for value in (median(values), min(values), max(values)))
    return f"{middle}{suffix}" + (f" ({minimum} to {maximum})" if len(values) > 1 else "")


def written_ratio(measurement: Measurement) -> str:
    if not (values := measurement.ratio):
        return "-"
    spread = f" ({min(values):.2f} to {max(values):.2f})" if len(values) > 1 else ""
    return f"{median(values):.2f}{spread} {measurement.ratio_what}".rstrip()
