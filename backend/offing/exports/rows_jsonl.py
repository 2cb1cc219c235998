"""Rows as JSON lines: everything that Parquet holds, for readers without it. Loses nothing."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import orjson

from offing.core.rows import TrainRow
from offing.exports.columns import TOKENS, TURNS, row_of, scalar_columns
from offing.exports.format import Options, Sink
from offing.exports.lines import Lines


def open_sink(file: BinaryIO, _: Options) -> Sink:
    return Lines(file, _documents)


def read(path: Path) -> Iterator[TrainRow]:
    with path.open("rb") as file:
        for line in file:
            yield row_of(orjson.loads(line))


def _documents(row: TrainRow) -> Iterable[dict[str, Any]]:
    yield {
        **scalar_columns(row),
        **{column: getattr(row.turns, name) for name, column in TURNS.items()},
        **{name: getattr(row, name) for name in TOKENS},
    }
