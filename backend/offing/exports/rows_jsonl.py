"""Training rows as lossless JSON lines.

The content is that of the Parquet format, for readers without Parquet.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import orjson

from offing.core.training_rows import TrainingRow
from offing.exports.columns import ROLE_CALL_COLUMNS, TOKEN_COLUMNS, row_from_columns, scalar_columns
from offing.exports.format import ExportOptions, Format, RecordUnit, Sink
from offing.exports.json_lines import JsonLinesSink


def create_sink(file: BinaryIO, _: ExportOptions) -> Sink:
    return JsonLinesSink(file, _documents)


def read(path: Path) -> Iterator[TrainingRow]:
    with path.open("rb") as file:
        for line in file:
            yield row_from_columns(orjson.loads(line))


def _documents(row: TrainingRow) -> Iterable[dict[str, Any]]:
    yield {
        **scalar_columns(row),
        **{column: getattr(row.turns, name) for name, column in ROLE_CALL_COLUMNS.items()},
        **{name: getattr(row, name) for name in TOKEN_COLUMNS},
    }


FORMAT = Format("rows", RecordUnit.ROW, "the same rows as JSON lines", create_sink, read)
