"""Lists of numbers as Parquet pages. The only home of how levels and values are laid out in one.

Arrow finds the levels of a list value by value, which costs more than everything else of an export; from the lists'
lengths they are a run or two a list. Knows no file. Source: the Parquet format, Encodings.md and parquet.thrift.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np

from offing.exports.arrow import pa
from offing.exports.thrift import I32, STRUCT, TRUE, Struct, packed, varint

PLAIN, RLE, BYTE_STREAM_SPLIT = 0, 3, 9
"""Parquet's `Encoding`."""

DATA_PAGE_V2, ZSTD = 3, 6
"""Parquet's `PageType` and `CompressionCodec`."""

LEVEL, FAST = 1, -3
"""Of zstd: for what is split, and for what is a few long runs between numbers that hardly compress."""

ABSENT, EMPTY, PRESENT = range(3)
"""Definition levels of a list that may be null, of elements that may not."""


@dataclass(frozen=True, slots=True)
class Page:
    """Lists of a column."""

    body: bytes
    """Header and compressed content; under 2 GB, which is 500 million tokens."""
    size: int
    """Bytes without compression, the header's included."""
    values: int
    """Entries, one for a list without any."""
    encoding: int


class Levels:
    """Where lists begin, and which of them are there: shared by columns that are as long."""

    def __init__(self, lengths: Any, present: Any) -> None:
        """`lengths`: of each list, 0 where it is not `present`."""
        entries = np.maximum(lengths, 1)
        self.rows, self.values = len(lengths), int(entries.sum())
        self.without = int((lengths == 0).sum())
        self.begins, self.defined = b"".join(_begins(entries)), b"".join(_defined(lengths, present))


def page_of(column: Any, levels: Levels, *, split: bool) -> Page:
    """A list column of numbers or booleans. `split`: four-byte numbers by significance, which compresses better."""
    content = _values(column.flatten(), split=split)
    squeezed = pa.Codec("zstd", LEVEL if split else FAST).compress(content, asbytes=True)
    encoding = BYTE_STREAM_SPLIT if split else PLAIN
    said = levels.begins + levels.defined
    header = packed(
        {
            1: (I32, DATA_PAGE_V2),
            2: (I32, len(said) + content.nbytes),
            3: (I32, len(said) + len(squeezed)),
            8: (STRUCT, _header(levels, encoding)),
        }
    )
    size = len(header) + len(said) + content.nbytes
    return Page(b"".join((header, said, squeezed)), size, levels.values, encoding)


def _header(levels: Levels, encoding: int) -> Struct:
    """Parquet's `DataPageHeaderV2`."""
    return {
        1: (I32, levels.values),
        2: (I32, levels.without),
        3: (I32, levels.rows),
        4: (I32, encoding),
        5: (I32, len(levels.defined)),
        6: (I32, len(levels.begins)),
        7: (TRUE, None),
    }


def _begins(entries: Any) -> Iterator[bytes]:
    """Repetition levels: 0 for the first entry of a list, 1 for those that follow."""
    for count in entries.tolist():
        yield _run(1, 0)
        if count > 1:
            yield _run(count - 1, 1)


def _defined(lengths: Any, present: Any) -> Iterator[bytes]:
    levels = np.where(lengths > 0, PRESENT, np.where(present, EMPTY, ABSENT)).tolist()
    for level, run in groupby(zip(levels, np.maximum(lengths, 1).tolist(), strict=True), key=lambda pair: pair[0]):
        yield _run(sum(count for _, count in run), level)


def _run(count: int, value: int) -> bytes:
    """One value many times, in Parquet's run-length encoding."""
    return varint(count << 1) + bytes((value,))


def _values(values: Any, *, split: bool) -> Any:
    if pa.types.is_boolean(values.type):
        return np.packbits(values.to_numpy(zero_copy_only=False), bitorder="little")
    numbers = values.to_numpy()
    if numbers.dtype.kind == "i":
        numbers = numbers.astype("<i4", copy=False)
    if not split:
        return numbers
    apart = np.empty((4, len(numbers)), np.uint8)
    for byte in range(4):
        np.right_shift(numbers.view(np.uint32), 8 * byte, out=apart[byte], casting="unsafe")
    return apart.reshape(-1)
