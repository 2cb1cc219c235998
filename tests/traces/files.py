"""Recorded cases as files, and what differs from them in words."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path
from typing import Any

from tests.traces.case_runner import Crash, When
from tests.traces.trace import Entry, Trace

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
    read_back: Mapping[Crash, list[int]] = field(default_factory=dict[Crash, list[int]])
    """How many calls each claim after a crash had on record. Empty: by chance, as the number of a transaction is."""

    def at_other_moments(self) -> "Recorded":
        """For a run that begins another number of transactions: nothing is known of any one of them."""
        return replace(self, read_back={})

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
        "crashes": [
            {"moments": _describe_crashes(one.moments), "differences": one.differences} for one in recorded.outcomes
        ],
        "read_back": {when: _counts(recorded, when) for when in WHENS},
    }
    path_of(recorded.case).write_text(json.dumps(body, indent=1, sort_keys=True, ensure_ascii=False) + "\n")


def read(case: str) -> Recorded:
    return read_file(path_of(case))


def read_file(path: Path) -> Recorded:
    body = json.loads(path.read_text())
    outcomes = [Outcome(_crashes(one["moments"]), one["differences"]) for one in body["crashes"]]
    read_back = {crash: counts for when in WHENS for crash, counts in _counted(when, body["read_back"][when])}
    return Recorded(body["case"], body["trace"], body["transactions"], outcomes, read_back)


def _counts(recorded: Recorded, when: When) -> str:
    """From the first transaction on, as `- 0 4+1`."""
    counts = [recorded.read_back[crash] for crash in recorded.moments if crash.when == when and recorded.read_back]
    return " ".join("+".join(map(str, each)) or "-" for each in counts)


def _counted(when: When, counts: str) -> Iterable[tuple[Crash, list[int]]]:
    for at, each in enumerate(counts.split(), 1):
        yield Crash(when, at), [int(count) for count in each.split("+")] if each != "-" else []


def _describe_crashes(moments: Iterable[Crash]) -> str:
    """As `before 1-4, before 7, after 2`."""
    messages = list[str]()
    for when in WHENS:
        numbers = sorted(crash.at for crash in moments if crash.when == when)
        for _, run in groupby(enumerate(numbers), lambda pair: pair[1] - pair[0]):
            results = [number for _, number in run]
            messages.append(f"{when} {results[0]}" + (f"-{results[-1]}" if len(results) > 1 else ""))
    return ", ".join(messages)


def _crashes(message: str) -> list[Crash]:
    results = list[Crash]()
    for part in message.split(", "):
        when, _, numbers = part.partition(" ")
        first, _, last = numbers.partition("-")
        results += [
            Crash("after" if when == "after" else "before", n) for n in range(int(first), int(last or first) + 1)
        ]
    return results


def in_words(differences: Sequence[Entry]) -> str:
    """The first difference."""
    first = differences[0]
    messages = [f"missing: {_line(entry)}" for entry in first.get("missing", [])[:1]]
    messages += [f"not recorded: {_line(entry)}" for entry in first.get("more", [])[:1]]
    messages += [_changed(entry) for entry in first.get("changed", [])[:1]]
    return f"{first['where']}: {'; '.join(messages)}"


def _changed(entry: Entry) -> str:
    fields = [f"{name} was {_line(was)} and is {_line(now)}" for name, (was, now) in entry["fields"].items()]
    return " ".join(filter(None, (entry["entry"], "; ".join(fields))))


def _line(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, ensure_ascii=False)
    return text if len(text) < 600 else f"{text[:600]}…"
