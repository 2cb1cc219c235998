"""Rows as Parquet: a list column for each per-token array, compressed with zstd; read by `datasets`. Loses nothing.

Arrays of many rows are laid end to end with numpy, so that no token becomes a Python object. Lists of tokens hold no
null, and say so; `spliced` writes them.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, chain, pairwise
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import orjson

from offing.core.packed import Turns
from offing.core.rows import SPAN_CODES, TrainRow
from offing.exports.arrow import pa, pq
from offing.exports.columns import TOKENS, TURNS, WHOLE, row_of
from offing.exports.format import Options, Sink
from offing.exports.plain import ACCEPTED, COST, EPISODE, HEAD, episode_columns, head_columns
from offing.exports.spliced import SplicedWriter

GROUP_TOKENS = 2_000_000
"""Tokens of a row group, about 40 MB, of which a writer holds the compressed bytes."""

PAGE_TOKENS = 250_000
"""Tokens of a page, or a portion if that has more; a writer holds no more of them as they are."""

SPLIT = frozenset({"token_ids", "input_ids", "prompts", "responses"})
"""Columns whose bytes are written by significance: the upper ones of ids are alike, and compress."""

TIME = pa.timestamp("us", "UTC")

TEXT = frozenset({"scores", "references"})
"""Columns of several parts, kept as JSON."""

EPISODE_TYPES: dict[str, Any] = {
    "seed": pa.int64(),
    "reward": pa.float64(),
    "group_size": pa.int32(),
    "member": pa.int32(),
    "attempt": pa.int32(),
    "created_at": TIME,
    "started_at": TIME,
    "ended_at": TIME,
    "settled_at": TIME,
    "tags": pa.list_(pa.string()),
}
"""Text, where it is not said."""

COST_TYPES: dict[str, Any] = {"usd": pa.float64(), "seconds": pa.float64()}
"""A count, where it is not said."""

HEAD_TYPES: dict[str, Any] = {
    "segment": pa.int32(),
    "parent_segment": pa.int32(),
    "parent_tokens": pa.int32(),
    ACCEPTED: pa.bool_(),
}

TURN_TYPES: dict[str, Any] = {
    "seq": pa.int64(),
    "number": pa.int32(),
    "temperature": pa.float64(),
    "top_p": pa.float64(),
    "done": pa.bool_(),
}

TOKEN_TYPES = {
    "token_ids": pa.int32(),
    "loss_mask": pa.bool_(),
    "behaviour_logprobs": pa.float32(),
    "entropy": pa.float32(),
    "turn_index": pa.int16(),
    "span_kind": pa.int8(),
}


def filled(kind: Any) -> Any:
    """The type of a list in which nothing is null."""
    return pa.list_(pa.field("element", kind, nullable=False))


SCHEMA = pa.schema(
    [
        *(pa.field(c, EPISODE_TYPES.get(c, pa.string())) for c in EPISODE.values()),
        *(pa.field(c, COST_TYPES.get(name, pa.int64())) for name, c in COST.items()),
        *(pa.field(c, HEAD_TYPES.get(c, pa.string())) for c in (*HEAD.values(), ACCEPTED)),
        *(pa.field(name, pa.int32() if name == "part" else pa.string()) for name in WHOLE),
        *(pa.field(c, pa.list_(TURN_TYPES.get(name, pa.string()))) for name, c in TURNS.items()),
        *(pa.field(name, filled(kind)) for name, kind in TOKEN_TYPES.items()),
    ],
    metadata={"offing.format": "rows-1", "offing.span_kinds": orjson.dumps(SPAN_CODES)},
)


class ParquetSink:
    """Writes row groups of about `GROUP_TOKENS` tokens. `batch`: makes a record batch of rows, of type `schema`."""

    def __init__(self, file: BinaryIO, schema: Any, batch: Callable[[Sequence[Any]], Any]) -> None:
        lists = [f for f in schema if pa.types.is_list(f.type)]
        plain = [f.name for f in schema if f not in lists]
        listed = [f"{f.name}.list.element" for f in lists if pa.types.is_string(f.type.value_type)]
        long = [f.name for f in lists if f.type == filled(f.type.value_type)]
        self._writer = SplicedWriter(
            file, schema, long, SPLIT, compression="zstd", compression_level=1, use_dictionary=[*plain, *listed],
            write_statistics=plain,
        )  # fmt: skip
        self._batch, self._held, self._tokens, self._group = batch, list[Any](), 0, 0
        self.written = 0

    def write(self, units: Sequence[Any]) -> None:
        self._held += units
        self._tokens += sum(map(len, units))
        if self._tokens >= PAGE_TOKENS:
            self._add()

    def close(self) -> None:
        self._add()
        self._writer.close()

    def _add(self) -> None:
        if self._held:
            self._writer.add(self._batch(self._held))
            self.written += len(self._held)
            self._held, self._tokens, self._group = [], 0, self._group + self._tokens
        if self._group >= GROUP_TOKENS:
            self._writer.flush()
            self._group = 0


def open_sink(file: BinaryIO, _: Options) -> Sink:
    return ParquetSink(file, SCHEMA, batch_of)


def read(path: Path) -> Iterator[TrainRow]:
    """The rows of a file, a row group at a time."""
    with pq.ParquetFile(path) as file:
        for nth in range(file.num_row_groups):
            table = file.read_row_group(nth)
            arrays = {name: _split(table.column(name)) for name in TOKENS}
            for at, columns in enumerate(table.drop_columns(list(TOKENS)).to_pylist()):
                texts = {name: columns[name] and orjson.loads(columns[name]) for name in TEXT}
                yield row_of({**columns, **texts, **{name: array[at] for name, array in arrays.items()}})


def batch_of(rows: Sequence[TrainRow]) -> Any:
    """Rows as Arrow columns."""
    return pa.RecordBatch.from_arrays([*_scalars(rows), *_turns(rows), *_tokens(rows)], schema=SCHEMA)


def lists(arrays: Sequence[Any], kind: Any) -> Any:
    """Numpy arrays as one list column; a None becomes a null."""
    offsets = np.zeros(len(arrays) + 1, np.int32)
    np.cumsum([0 if array is None else len(array) for array in arrays], out=offsets[1:])
    values = [array for array in arrays if array is not None]
    null = pa.array([array is None for array in arrays]) if len(values) < len(arrays) else None
    whole = pa.array(_end_to_end(values), kind)
    return pa.ListArray.from_arrays(offsets, whole, type=filled(kind), mask=null)


def _end_to_end(arrays: Sequence[Any]) -> Any:
    """One array of many, without a copy where they are neighbours in memory, as rows of one portion are."""
    if not arrays:
        return np.empty(0)
    whole, at = arrays[0].base, arrays[0].ctypes.data
    for array in arrays:
        if whole is None or array.base is not whole or array.ctypes.data != at:
            return np.concatenate(arrays)
        at += array.nbytes
    first = (arrays[0].ctypes.data - whole.ctypes.data) // whole.itemsize
    return whole[first : first + sum(map(len, arrays))]


def _scalars(rows: Sequence[TrainRow]) -> Iterator[Any]:
    known = {id(row.episode): row.episode for row in rows}
    said = {key: _worded_out(episode_columns(episode)) for key, episode in known.items()}
    for column in (*EPISODE.values(), *COST.values()):
        yield pa.array([said[id(row.episode)][column] for row in rows], SCHEMA.field(column).type)
    heads = [head_columns(row.head) for row in rows]
    for column in (*HEAD.values(), ACCEPTED):
        yield pa.array([head[column] for head in heads], SCHEMA.field(column).type)
    for name in WHOLE:
        yield pa.array([getattr(row, name) for row in rows], SCHEMA.field(name).type)


def _turns(rows: Sequence[TrainRow]) -> Iterator[Any]:
    turns: list[Turns] = [row.turns for row in rows]
    offsets = pa.array([0, *accumulate(map(len, turns))], pa.int32())
    for name, column in TURNS.items():
        values = list(chain.from_iterable(getattr(t, name) for t in turns))
        yield pa.ListArray.from_arrays(offsets, pa.array(values, SCHEMA.field(column).type.value_type))


def _tokens(rows: Sequence[TrainRow]) -> Iterator[Any]:
    for name, kind in TOKEN_TYPES.items():
        yield lists([getattr(row, name) for row in rows], kind)


def _worded_out(columns: dict[str, Any]) -> dict[str, Any]:
    """What has parts as JSON text."""
    return columns | {n: None if columns[n] is None else orjson.dumps(columns[n]).decode() for n in TEXT}


def _split(column: Any) -> list[Any]:
    """A list column as a numpy array a row."""
    whole = column.combine_chunks()
    offsets = whole.offsets.to_numpy()
    values = whole.values.to_numpy(zero_copy_only=False)
    return [values[a:b] for a, b in pairwise(offsets)]
