"""docs/benchmarks.json, which contains every measurement with its commit, and the table that is made from it.

A part that is measured again replaces only its own rows, so each row names the commit that was measured.
"""

import json
import os
import platform
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from tests.bench.measurement import Measurement, median, written, written_ratio

ROOT = Path(__file__).parents[2]
DATA = ROOT / "docs" / "benchmarks.json"
PAGE = ROOT / "docs" / "benchmarks.md"

BEGIN, END = "<!-- figures: written by `make bench` -->", "<!-- end of figures -->"

Row = Mapping[str, Any]
"""A stored measurement."""


@dataclass(frozen=True, slots=True)
class Circumstances:
    """Commit, machine and load of the measurement of a part."""

    commit: str
    """Ends with `+` if the checkout had uncommitted changes."""
    machine: str
    load: str
    """Load averages of 1, 5 and 15 minutes at the beginning of the part."""


def circumstances() -> Circumstances:
    libraries = ", ".join(f"{name} {version(name)}" for name in ("langgraph", "celery", "psycopg", "redis"))
    machine = (
        f"{datetime.now(UTC):%Y-%m-%d}, {os.cpu_count()} cores, {platform.system()} "
        f"{platform.release().split('-')[0]}, Python {platform.python_version()}, {libraries}"
    )
    return Circumstances(_commit(), machine, ", ".join(f"{one:.1f}" for one in os.getloadavg()))


def _commit() -> str:
    commit = _git("rev-parse", "--short=7", "HEAD")
    return commit + ("+" if _git("status", "--porcelain", "--untracked-files=no", "--", ":!docs") else "")


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def rows(part: str, metrics: Sequence[Measurement], about: Circumstances) -> list[Row]:
    """Return the measurements of a part, ready to be stored."""
    return [
        {
            "part": part,
            "what": metric.what,
            "ours": written(metric.ours, metric.unit),
            "bare": f"{written(metric.bare, metric.unit)} {metric.bare_what}".rstrip(),
            "ratio": written_ratio(metric),
            "median_ratio": round(median(metric.ratio), 4) if metric.ratio else None,
            "rounds": len(metric.ours),
            "aim": metric.aim.words if metric.aim else "",
            "met": metric.met,
            "note": metric.note,
            "commit": about.commit,
            "machine": about.machine,
            "load": about.load,
        }
        for metric in metrics
    ]


def stored() -> list[Row]:
    return json.loads(DATA.read_text("utf-8")) if DATA.exists() else []


def store(part: str, measured: Sequence[Row], order: Sequence[str]) -> None:
    """Replace the rows of a part and write the table again. Parts that are not in `order` are dropped."""
    remaining = [row for row in stored() if row["part"] != part]
    every = sorted([*remaining, *measured], key=lambda row: order.index(row["part"]) if row["part"] in order else -1)
    every = [row for row in every if row["part"] in order]
    DATA.write_text(json.dumps(every, indent=1, ensure_ascii=False) + "\n", "utf-8")
    head, rest = PAGE.read_text("utf-8").split(BEGIN, 1)
    PAGE.write_text(f"{head}{BEGIN}\n{table(every)}\n\n{measurements(every)}\n{END}{rest.split(END, 1)[1]}", "utf-8")


def table(every: Sequence[Row]) -> str:
    """Render the table as Markdown, one row per measurement."""
    head = [
        "| part | what | Offing | bare | ratio | rounds | aim | met | commit |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    return "\n".join(head + [_line(row) for row in every])


def _line(row: Row) -> str:
    met = "" if row["met"] is None else ("yes" if row["met"] else "**no**")
    what = row["what"] + (f"; {row['note']}" if row["note"] else "")
    cells = (row["part"], what, row["ours"], row["bare"], row["ratio"], row["rounds"], row["aim"], met, row["commit"])
    return f"| {' | '.join(map(str, cells))} |"


def measurements(every: Sequence[Row]) -> str:
    """Render as Markdown when and where the parts were measured, with the load at the beginning of each."""
    results: dict[tuple[str, str], dict[str, str]] = {}
    for row in every:
        results.setdefault((row["commit"], row["machine"]), {})[row["part"]] = row["load"]
    return "\n".join(
        f"- Commit {commit}, {machine}. Load averages (1, 5, 15 minutes) at the beginning of each part: "
        + "; ".join(f"{part} {load}" for part, load in parts.items())
        + "."
        for (commit, machine), parts in results.items()
    )
