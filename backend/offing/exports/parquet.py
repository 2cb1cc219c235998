"""Training rows as lossless Parquet, compressed with zstd.

Each per-token array is a list column; `datasets` reads it. The arrays of many rows are
concatenated with numpy, so no token becomes a Python object. Lists of tokens contain no null,
and their type says so.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, chain, pairwise
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import orjson

from offing.core.packed_segment import PackedTurns
from offing.core.training_rows import SPAN_CODES, TrainingRow
from offing.exports.arrow import pa, pq
from offing.exports.columns import ROLE_CALL_COLUMNS, TOKEN_COLUMNS, UNSPLIT_FIELDS, row_from_columns
from offing.exports.format import ExportOptions, Format, RecordUnit, Sink
from offing.exports.row_values import (
    ACCEPTED_COLUMN,
    COST_COLUMNS,
    METADATA_COLUMNS,
    SEGMENT_COLUMNS,
    segment_info_columns,
    trajectory_metadata_columns,
)

ROW_GROUP_TOKENS = 500_000
"""Tokens per row group. They are held in memory: 15 to 33 bytes per token, twice while a group is written."""

ID_COLUMNS = frozenset({"token_ids", "input_ids", "prompts", "responses"})
"""Columns of token ids. Their bytes and those of floats are stored by significance, because the upper bytes are
similar and compress well.
"""

TIME_TYPE = pa.timestamp("us", "UTC")

JSON_COLUMNS = frozenset({"scores", "reference"})
"""Columns with structured values, stored as JSON text."""

METADATA_TYPES: dict[str, Any] = {
    "seed": pa.int64(),
    "reward": pa.float64(),
    "group_size": pa.int32(),
    "member": pa.int32(),
    "attempt": pa.int32(),
    "created_at": TIME_TYPE,
    "started_at": TIME_TYPE,
    "ended_at": TIME_TYPE,
    "finalized_at": TIME_TYPE,
    "tags": pa.list_(pa.string()),
}
"""Columns without an entry are text."""

COST_TYPES: dict[str, Any] = {"cost_usd": pa.float64(), "seconds": pa.float64()}
"""Columns without an entry are counts."""

SEGMENT_TYPES: dict[str, Any] = {
    "segment_idx": pa.int32(),
    "parent_idx": pa.int32(),
    "parent_tokens": pa.int32(),
    ACCEPTED_COLUMN: pa.bool_(),
}

ROLE_CALL_TYPES: dict[str, Any] = {
    "seq": pa.int64(),
    "turn": pa.int32(),
    "temperature": pa.float64(),
    "top_p": pa.float64(),
    "is_final": pa.bool_(),
}

TOKEN_TYPES = {
    "token_ids": pa.int32(),
    "loss_mask": pa.bool_(),
    "behavior_logprobs": pa.float32(),
    "entropy": pa.float32(),
    "turn_index": pa.int16(),
    "span_kind": pa.int8(),
}


def non_null_list(element_type: Any) -> Any:
    """Return the type of a list without null elements."""
    return pa.list_(pa.field("element", element_type, nullable=False))


SCHEMA = pa.schema(
    [
        *(pa.field(c, METADATA_TYPES.get(c, pa.string())) for c in METADATA_COLUMNS),
        *(pa.field(c, COST_TYPES.get(name, pa.int64())) for name, c in COST_COLUMNS.items()),
        *(pa.field(c, SEGMENT_TYPES.get(c, pa.string())) for c in (*SEGMENT_COLUMNS.values(), ACCEPTED_COLUMN)),
        *(pa.field(name, pa.int32() if name == "part" else pa.string()) for name in UNSPLIT_FIELDS),
        *(pa.field(c, pa.list_(ROLE_CALL_TYPES.get(name, pa.string()))) for name, c in ROLE_CALL_COLUMNS.items()),
        *(pa.field(name, non_null_list(kind)) for name, kind in TOKEN_TYPES.items()),
    ],
    metadata={"offing.format": "rows-1", "offing.span_kinds": orjson.dumps(SPAN_CODES)},
)


class ParquetSink:
    """Writes row groups of about `ROW_GROUP_TOKENS` tokens.

    `build_batch` converts rows to a record batch of type `schema`.
    """

    def __init__(self, file: BinaryIO, schema: Any, build_batch: Callable[[Sequence[Any]], Any]) -> None:
        lists = {f"{f.name}.list.element": f for f in schema if pa.types.is_list(f.type)}
        scalars = [f.name for f in schema if not pa.types.is_list(f.type)]
        texts = [path for path, f in lists.items() if pa.types.is_string(f.type.value_type)]
        split = [path for path, f in lists.items() if f.name in ID_COLUMNS or pa.types.is_float32(f.type.value_type)]
        self._writer = pq.ParquetWriter(
            file, schema, compression="zstd", compression_level=1, use_dictionary=[*scalars, *texts],
            column_encoding=dict.fromkeys(split, "BYTE_STREAM_SPLIT"), write_statistics=scalars,
        )  # fmt: skip
        self._build_batch, self._records, self._tokens = build_batch, list[Any](), 0
        self.record_count = 0

    def write(self, records: Sequence[Any]) -> None:
        self._records += records
        self._tokens += sum(map(len, records))
        if self._tokens >= ROW_GROUP_TOKENS:
            self._write_row_group()

    def close(self) -> None:
        self._write_row_group()
        self._writer.close()

    def _write_row_group(self) -> None:
        if self._records:
            batch = self._build_batch(self._records)
            self._writer.write_batch(batch, row_group_size=len(batch))
            self.record_count += len(self._records)
            self._records, self._tokens = [], 0


def create_sink(file: BinaryIO, _: ExportOptions) -> Sink:
    return ParquetSink(file, SCHEMA, build_record_batch)


def read(path: Path) -> Iterator[TrainingRow]:
    """Yield the rows of a file, reading one row group at a time."""
    with pq.ParquetFile(path) as file:
        for nth in range(file.num_row_groups):
            table = file.read_row_group(nth)
            arrays = {name: _split_list_column(table.column(name)) for name in TOKEN_COLUMNS}
            for at, columns in enumerate(table.drop_columns(list(TOKEN_COLUMNS)).to_pylist()):
                texts = {name: columns[name] and orjson.loads(columns[name]) for name in JSON_COLUMNS}
                yield row_from_columns({**columns, **texts, **{name: array[at] for name, array in arrays.items()}})


def build_record_batch(rows: Sequence[TrainingRow]) -> Any:
    """Convert rows to an Arrow record batch."""
    return pa.RecordBatch.from_arrays(
        [*_scalar_columns(rows), *_role_call_columns(rows), *_token_columns(rows)], schema=SCHEMA
    )


def build_list_column(arrays: Sequence[Any], element_type: Any) -> Any:
    """Convert numpy arrays to one list column. `None` becomes null."""
    offsets = np.zeros(len(arrays) + 1, np.int32)
    np.cumsum([0 if array is None else len(array) for array in arrays], out=offsets[1:])
    values = [array for array in arrays if array is not None]
    null = pa.array([array is None for array in arrays]) if len(values) < len(arrays) else None
    whole = pa.array(_concatenate(values), element_type)
    return pa.ListArray.from_arrays(offsets, whole, type=non_null_list(element_type), mask=null)


def _concatenate(arrays: Sequence[Any]) -> Any:
    """Concatenate arrays.

    They are not copied if they are adjacent in memory, as the rows of one chunk are.
    """
    if not arrays:
        return np.empty(0)
    whole, at = arrays[0].base, arrays[0].ctypes.data
    for array in arrays:
        if whole is None or array.base is not whole or array.ctypes.data != at:
            return np.concatenate(arrays)
        at += array.nbytes
    first = (arrays[0].ctypes.data - whole.ctypes.data) // whole.itemsize
    return whole[first : first + sum(map(len, arrays))]


def _scalar_columns(rows: Sequence[TrainingRow]) -> Iterator[Any]:
    metadata_by_id = {id(row.metadata): row.metadata for row in rows}
    columns_by_id = {
        key: _serialize_structured_columns(trajectory_metadata_columns(episode))
        for key, episode in metadata_by_id.items()
    }
    for column in (*METADATA_COLUMNS, *COST_COLUMNS.values()):
        yield pa.array([columns_by_id[id(row.metadata)][column] for row in rows], SCHEMA.field(column).type)
    heads = [segment_info_columns(row.segment_info) for row in rows]
    for column in (*SEGMENT_COLUMNS.values(), ACCEPTED_COLUMN):
        yield pa.array([head[column] for head in heads], SCHEMA.field(column).type)
    for name in UNSPLIT_FIELDS:
        yield pa.array([getattr(row, name) for row in rows], SCHEMA.field(name).type)


def _role_call_columns(rows: Sequence[TrainingRow]) -> Iterator[Any]:
    turns: list[PackedTurns] = [row.turns for row in rows]
    offsets = pa.array([0, *accumulate(map(len, turns))], pa.int32())
    for name, column in ROLE_CALL_COLUMNS.items():
        values = list(chain.from_iterable(getattr(t, name) for t in turns))
        yield pa.ListArray.from_arrays(offsets, pa.array(values, SCHEMA.field(column).type.value_type))


def _token_columns(rows: Sequence[TrainingRow]) -> Iterator[Any]:
    for name, kind in TOKEN_TYPES.items():
        yield build_list_column([getattr(row, name) for row in rows], kind)


def _serialize_structured_columns(columns: dict[str, Any]) -> dict[str, Any]:
    """Convert structured values to JSON text."""
    return columns | {n: None if columns[n] is None else orjson.dumps(columns[n]).decode() for n in JSON_COLUMNS}


def _split_list_column(column: Any) -> list[Any]:
    """Split a list column into one numpy array per row."""
    whole = column.combine_chunks()
    offsets = whole.offsets.to_numpy()
    values = whole.values.to_numpy(zero_copy_only=False)
    return [values[a:b] for a, b in pairwise(offsets)]


FORMAT = Format(
    "parquet",
    RecordUnit.ROW,
    "one row per segment, for `datasets` and the learner",
    create_sink,
    read,
    streams_lines=False,
)
