"""Recorded cases as files, and what differs from them in words."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any, cast

from tests.traces.neutral import Entry, Trace
from tests.traces.playing import Crash, When

FOLDER = Path(__file__).parent / "recorded"

WHENS: tuple[When, ...] = ("before", "after")


@dataclass(frozen=True)
class Outcome:
    """How the traces of some crashes differ from the undisturbed one."""

    moments: Sequence[Crash]
    differences: Sequence[Entry]
    """Empty: not at all."""


@dataclass(frozen=True)
class Recorded:
    """A case as it was recorded."""

    case: str
    trace: Trace
    transactions: int
    """Of the undisturbed run; a crash is told by their number."""
    outcomes: Sequence[Outcome] = ()
    read_back: Mapping[str, str] = field(default_factory=dict[str, str])
    """By `before` and `after`: how many calls were read back after each crash, from the first transaction on."""

    @property
    def moments(self) -> list[Crash]:
        """Those of the crashes that were recorded, `before` first."""
        return sorted(
            (crash for one in self.outcomes for crash in one.moments), key=lambda c: (WHENS.index(c.when), c.at)
        )

    def after(self, crash: Crash) -> Sequence[Entry] | None:
        """How the trace of this crash differs. None: it was not recorded."""
        return next((one.differences for one in self.outcomes if crash in one.moments), None)


def path_of(case: str) -> Path:
    return FOLDER / f"{case.replace(', ', '--').replace(' ', '-')}.json"


def write(recorded: Recorded) -> None:
    FOLDER.mkdir(exist_ok=True)
    body = {
        "case": recorded.case,
        "trace": recorded.trace,
        "transactions": recorded.transactions,
        "crashes": [{"moments": _told(one.moments), "differences": one.differences} for one in recorded.outcomes],
        "read_back": dict(recorded.read_back),
    }
    path_of(recorded.case).write_text(json.dumps(body, indent=1, sort_keys=True, ensure_ascii=False) + "\n")


def read(case: str) -> Recorded:
    return read_file(path_of(case))


def read_file(path: Path) -> Recorded:
    body = json.loads(path.read_text())
    outcomes = [Outcome(_crashes(one["moments"]), one["differences"]) for one in body["crashes"]]
    return Recorded(body["case"], body["trace"], body["transactions"], outcomes, body["read_back"])


def _told(moments: Iterable[Crash]) -> str:
    """As `before 1-4, before 7, after 2`."""
    told = list[str]()
    for when in WHENS:
        numbers = sorted(crash.at for crash in moments if crash.when == when)
        for _, run in groupby(enumerate(numbers), lambda pair: pair[1] - pair[0]):
            found = [number for _, number in run]
            told.append(f"{when} {found[0]}" + (f"-{found[-1]}" if len(found) > 1 else ""))
    return ", ".join(told)


def _crashes(told: str) -> list[Crash]:
    found = list[Crash]()
    for part in told.split(", "):
        when, _, numbers = part.partition(" ")
        first, _, last = numbers.partition("-")
        found += [Crash("after" if when == "after" else "before", n) for n in range(int(first), int(last or first) + 1)]
    return found


def in_words(differences: Sequence[Entry]) -> str:
    """The first difference."""
    first = differences[0]
    missing, more = first["missing"], first["more"]
    if missing and more and _same_step(missing[0], more[0]):
        return f"{first['where']}: {_fields(missing[0], more[0])}"
    lost = f"missing: {_line(missing[0])}" if missing else ""
    new = f"not recorded: {_line(more[0])}" if more else ""
    return f"{first['where']}: {'; '.join(filter(None, (lost, new)))}"


def _same_step(one: Any, other: Any) -> bool:
    both = [cast(Entry, entry).get("name") for entry in (one, other) if isinstance(entry, dict)]
    return len(both) == 2 and both[0] == both[1]


def _fields(recorded: Entry, now: Entry) -> str:
    names = sorted(recorded.keys() | now.keys())
    changed = [
        f"{name} was {_line(recorded.get(name))} and is {_line(now.get(name))}"
        for name in names
        if recorded.get(name) != now.get(name)
    ]
    return f"{recorded.get('name') or 'it'}: {'; '.join(changed)}"


def _line(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, ensure_ascii=False)
    return text if len(text) < 600 else f"{text[:600]}…"
