"""Read the records of published files: JSON lists, JSON lines and tables. Errors name file, line and field."""

import csv
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar, cast

import orjson
from pydantic import BaseModel, ValidationError

from offing.core.errors import InvalidInput

Record = TypeVar("Record", bound=BaseModel)


def get_file(path: Path, *names: str) -> Path:
    """Return `path` if it is a file, or else its first file that matches one of the patterns.

    Raises `InvalidInput` that names the expected files.
    """
    if path.is_file():
        return path
    matches = [match for name in names for match in sorted(path.glob(name)) if match.is_file()]
    if not matches:
        raise InvalidInput(str(path), "there is no such file", f"Give the file, or a folder with {' or '.join(names)}.")
    return matches[0]


def iter_records(file: Path, record_type: type[Record]) -> Iterator[tuple[str, Record]]:
    """Yield the records of a `.jsonl` file, or of a file with one JSON list, each with its location.

    Fields that the type does not have are ignored.
    """
    if file.suffix.lower() == ".json":
        yield from _iter_list(file, record_type)
        return
    with file.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            if line.strip():
                location = f"{file.name} line {number}"
                yield location, parse_record(_parse_json(line, location), record_type, location)


def iter_rows(file: Path) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Yield the rows of a table with a header, each with its location. `.tsv` files have tabs, others commas."""
    csv.field_size_limit(min(sys.maxsize, 2**31 - 1))
    delimiter = "\t" if file.suffix.lower() == ".tsv" else ","
    rows = csv.DictReader((line.removeprefix("\ufeff") for _, line in iter_lines(file)), delimiter=delimiter)
    for row in rows:
        yield f"{file.name} line {rows.line_num}", {key: value or "" for key, value in row.items() if key is not None}


def iter_lines(file: Path) -> Iterator[tuple[str, str]]:
    """Yield the lines of a text file with their line ends, each with its location. Raises `InvalidInput`."""
    with file.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            location = f"{file.name} line {number}"
            try:
                yield location, line.decode()
            except UnicodeDecodeError as error:
                raise InvalidInput(location, f"is not valid UTF-8: {error.reason}", "Save the file as UTF-8.") from None


def parse_record(values: Any, record_type: type[Record], location: str) -> Record:
    """Return the record of JSON values. Raises `InvalidInput` that names the location and the field."""
    try:
        return record_type.model_validate(values)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        field = ".".join([location, *map(str, first["loc"])])
        names = ", ".join(info.alias or name for name, info in record_type.model_fields.items())
        raise InvalidInput(field, first["msg"], f"A record has the fields {names}.") from None


def _iter_list(file: Path, record_type: type[Record]) -> Iterator[tuple[str, Record]]:
    content: Any = _parse_json(file.read_bytes(), file.name)
    if not isinstance(content, list):
        raise InvalidInput(file.name, "the file is not a JSON list", "Use .jsonl as its suffix if it has one per line.")
    for number, values in enumerate(cast("list[Any]", content), 1):
        location = f"{file.name} record {number}"
        yield location, parse_record(values, record_type, location)


def _parse_json(data: bytes, location: str) -> Any:
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise InvalidInput(location, f"is not valid JSON: {error}", "Correct the file or download it again.") from None
