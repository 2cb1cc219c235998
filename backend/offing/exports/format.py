"""Export formats: the unit of data that each one writes, and how it is written.

The module of a format is imported when the format is used.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from offing.core.errors import InvalidInput
from offing.core.trajectory_records import PreferenceSource
from offing.registry import Group, Registry


class RecordUnit(StrEnum):
    """The unit of data that a format consists of."""

    ROW = "row"
    """`core.rows.TrainRow`. It requires token ids and logprobs."""
    TRAJECTORY = "dialogue"
    """`core.trajectory_records.TextTrajectory`: a complete run with all recorded data."""
    PREFERENCE = "preference"
    """`core.trajectory_records.PreferencePair`: two answers to the same prompt, one of them preferred."""


@dataclass(frozen=True, slots=True)
class ExportOptions:
    """Options of an export."""

    include_quarantined: bool = False
    """Quarantined role calls are exported like all others."""
    include_references: bool = False
    """Reference answers are exported if the format has a field for them."""
    preference: PreferenceSource = PreferenceSource.REWARD
    """What the preferences of a format of pairs come from."""

    def check(self, unit: RecordUnit) -> None:
        """Raise InvalidInput for a source of preferences in a format without them."""
        if self.preference is not PreferenceSource.REWARD and unit is not RecordUnit.PREFERENCE:
            problem = f"only a format of preference pairs uses {self.preference.value}"
            raise InvalidInput("preference", problem, "Use the format pairs, or leave it out.")


class Sink(Protocol):
    """A writer that takes records in chunks and holds at most one chunk in memory."""

    @property
    def record_count(self) -> int:
        """Number of records written so far."""
        ...

    def write(self, records: Sequence[Any]) -> None: ...

    def close(self) -> None:
        """Write the end of the file. The file itself is not closed."""
        ...


@dataclass(frozen=True, slots=True)
class Format:
    """An export format. Its module may need packages that Offing does not require."""

    name: str
    unit: RecordUnit
    description: str
    create_sink: Callable[[BinaryIO, ExportOptions], Sink]
    """Returns a sink that writes to a file."""
    read: Callable[[Path], Iterator[Any]] | None = None
    """Reads a file record by record. `None` means that the format does not contain all data."""
    streams_lines: bool = True
    """The format has one JSON document per line, so it can be streamed."""


FORMATS: Registry[Format] = Registry(
    Group.EXPORT_FORMATS,
    "an export format",
    accepts=lambda value: isinstance(value, Format),
    remedy="Register an offing.exports.format.Format.",
    name_of=lambda format: format.name,
)
"""The export formats by name."""


def format_from_filename(filename: str) -> Format:
    """Return the format that a file name indicates:

    `x.parquet`, `x.atif`, or `x.verl.parquet` for a shared suffix. Raises `InvalidInput` with
    the possible formats if the name is ambiguous.
    """
    *_, before, ending = ("", "", *filename.lower().split(".")[1:])
    if before in FORMATS and ending == _filename_suffix(FORMATS[before]):
        return FORMATS[before]
    if ending in FORMATS:
        return FORMATS[ending]
    fitting = [f.name for f in FORMATS.iter_usable() if ending == _filename_suffix(f)] or list(FORMATS)
    problem = f"the name {filename!r} does not identify the format"
    raise InvalidInput("--format", problem, f"Use --format with one of: {', '.join(fitting)}.")


def get_streamed_format(name: str) -> Format:
    """Return the format of a name if it has one document per line. Raises `InvalidInput` otherwise."""
    format = FORMATS.get_named(name, "format")
    if not format.streams_lines:
        known = ", ".join(f.name for f in FORMATS.iter_usable() if f.streams_lines)
        raise InvalidInput("format", f"{name} cannot be streamed line by line", f"Use one of: {known}.")
    return format


def get_reader(format: Format) -> Callable[[Path], Iterator[Any]]:
    """Return a function that reads a file of this format record by record.

    Raises `InvalidInput` if the format does not contain all data.
    """
    if format.read is None:
        names = ", ".join(f.name for f in FORMATS.iter_usable() if f.read is not None)
        raise InvalidInput("format", f"{format.name} does not contain all data", f"Use one of: {names}.")
    return format.read


def _filename_suffix(format: Format) -> str:
    return "jsonl" if format.streams_lines else "parquet"
