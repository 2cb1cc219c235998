"""A measured figure with its aim, and how the lot is written down."""

import os
import platform
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version


@dataclass(frozen=True, slots=True)
class Figure:
    """One row of the table."""

    what: str
    ours: str
    bare: str = "-"
    """The same without the platform. A dash: there is no such thing."""
    ratio: str = "-"
    aim: str = ""
    met: bool | None = None
    """None: no aim was set."""


def median(values: Sequence[float]) -> float:
    return statistics.median(values)


def percentile(values: Sequence[float], share: float) -> float:
    """The value below which `share` of them lie."""
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def ms(seconds: float) -> str:
    return f"{seconds * 1000:.1f} ms"


def machine() -> str:
    """What the figures were measured on."""
    load = ", ".join(f"{one:.1f}" for one in os.getloadavg())
    libraries = ", ".join(f"{name} {version(name)}" for name in ("langgraph", "celery", "psycopg", "redis"))
    return (
        f"{datetime.now(UTC):%Y-%m-%d}, {os.cpu_count()} cores, {platform.system()} "
        f"{platform.release().split('-')[0]}, Python {platform.python_version()}, {libraries}; "
        f"load averages at the start {load}"
    )


def table(figures: Sequence[Figure]) -> str:
    """Markdown."""
    rows = ["| what | Offing | bare | ratio | aim | met |", "|---|---|---|---|---|---|"]
    for f in figures:
        met = "" if f.met is None else ("yes" if f.met else "**no**")
        rows.append(f"| {f.what} | {f.ours} | {f.bare} | {f.ratio} | {f.aim} | {met} |")
    return "\n".join(rows)
