"""What a format is: which unit of the record it is made of, and how units become bytes.

The only home of the list of formats. Opens no database; a format imports what it needs when it is opened.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from offing.core.errors import InvalidInput


class Unit(StrEnum):
    """What a format is made of."""

    ROW = "row"
    """`core.rows.TrainRow`: needs ids and log-probabilities."""
    DIALOGUE = "dialogue"
    """`core.episode.Dialogue`: a whole run, with what is known."""
    PREFERENCE = "preference"
    """`core.episode.Preference`: two answers of a group to one prompt."""


@dataclass(frozen=True, slots=True)
class Options:
    """What the person who exports decided."""

    quarantined: bool = False
    """Turns whose record is in doubt are taken as if it were not."""
    references: bool = False
    """Reference answers are written where the format has a place for them."""


class Sink(Protocol):
    """Takes units in portions, and keeps no more than a portion."""

    @property
    def written(self) -> int:
        """Records so far."""
        ...

    def write(self, units: Sequence[Any]) -> None: ...

    def close(self) -> None:
        """Write what belongs at the end. The file stays the caller's."""
        ...


@dataclass(frozen=True, slots=True)
class Format:
    """One way to write the record down."""

    name: str
    unit: Unit
    module: str
    """Within this package; it has `open_sink(file, options)`, and `read(path)` where it loses nothing."""
    about: str
    lines: bool = True
    """One JSON document a line, so that it can be streamed."""
    lossless: bool = False


FORMATS = {
    f.name: f
    for f in (
        Format("parquet", Unit.ROW, "parquet", "one row a segment, for `datasets` and our learner", False, True),
        Format("rows", Unit.ROW, "rows_jsonl", "the same rows as JSON lines", lossless=True),
        Format("verl", Unit.ROW, "verl", "verl's tensor columns in Parquet", lines=False),
        Format("tinker", Unit.ROW, "tinker", "Tinker-style datums"),
        Format("jsonl_chat", Unit.DIALOGUE, "chat", "conversations for imitation"),
        Format("pairs", Unit.PREFERENCE, "pairs", "prompt, chosen, rejected"),
        Format("atif", Unit.DIALOGUE, "atif", "whole runs in the Agent Trajectory Interchange Format"),
        Format("verl_prompts", Unit.DIALOGUE, "verl_prompts", "verl's prompt rows in Parquet", lines=False),
    )
}


def named(name: str) -> Format:
    """Raises InvalidInput for a name that is none."""
    if name not in FORMATS:
        raise InvalidInput("format", f"There is no format {name!r}", f"Use one of: {', '.join(FORMATS)}.")
    return FORMATS[name]


def of_file(name: str) -> Format:
    """The format that a file's name says: `x.parquet`, `x.atif`; before an ending that several share, `x.verl.parquet`.

    Raises InvalidInput, with the formats that it could be, where the name does not say which.
    """
    *_, before, ending = ("", "", *name.lower().split(".")[1:])
    if before in FORMATS and ending == _ending(FORMATS[before]):
        return FORMATS[before]
    if ending in FORMATS:
        return FORMATS[ending]
    fitting = [f.name for f in FORMATS.values() if ending == _ending(f)] or list(FORMATS)
    problem = f"the name {name!r} does not say which format to write"
    raise InvalidInput("--format", problem, f"Add --format with one of: {', '.join(fitting)}.")


def _ending(format: Format) -> str:
    return "jsonl" if format.lines else "parquet"


def open_sink(format: Format, file: BinaryIO, options: Options) -> Sink:
    """Raises InvalidInput, with the remedy, when a package that the format needs is not installed."""
    return _module(format).open_sink(file, options)


def reader(format: Format) -> Callable[[Path], Iterator[Any]]:
    """Reads back what the format wrote, row by row. Raises InvalidInput for a format that loses something."""
    if not format.lossless:
        known = ", ".join(f.name for f in FORMATS.values() if f.lossless)
        raise InvalidInput("format", f"{format.name} does not hold everything", f"Read one of: {known}.")
    return _module(format).read


def _module(format: Format) -> Any:
    try:
        return import_module(f"offing.exports.{format.module}")
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] not in ("numpy", "pyarrow"):
            raise
        problem = f"{format.name} needs the package {error.name}, which is not installed"
        raise InvalidInput("format", problem, "Install the extra: pip install 'offing[train]'.") from error
