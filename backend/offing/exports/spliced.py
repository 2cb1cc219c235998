"""A Parquet file that Arrow writes, but for the pages of its long lists, which `pages` makes.

Arrow is given those lists empty, and lays out everything else; our pages follow each of its row groups, and the footer
is told where they are. A reader sees one plain Parquet file.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, BinaryIO

import numpy as np

from offing.exports.arrow import pa, pq
from offing.exports.pages import RLE, ZSTD, Levels, Page, page_of
from offing.exports.thrift import I32, I64, LIST, Struct, packed, structs, unpacked

SAID_OF_PAGES = frozenset({8, 10, 11, 12, 13, 16})
"""Fields of `ColumnMetaData` about pages that are replaced: statistics, a dictionary, sizes."""

MAGIC = b"PAR1"


class SplicedWriter:
    """Writes row groups of record batches. `long`: list columns whose elements are numbers or booleans and never null.

    `split`: those of them whose bytes are written by significance. `options`: Arrow's, for all other columns.
    """

    def __init__(self, file: BinaryIO, schema: Any, long: Iterable[str], split: Iterable[str], **options: Any) -> None:
        self._long, self._split = sorted(long), frozenset(split)
        self._through = _Through(file)
        self._writer = pq.ParquetWriter(pa.PythonFile(self._through, "w"), schema, **options)
        self._batches: list[Any] = []
        self._pages: dict[str, list[Page]] = {}
        self._groups: list[dict[str, _Chunk]] = []

    def add(self, batch: Any) -> None:
        """A record batch of the next row group; its long lists are a page each from now on."""
        for name, page in self._made(batch):
            self._pages.setdefault(name, []).append(page)
            nth = batch.schema.get_field_index(name)
            batch = batch.set_column(nth, batch.schema.field(nth), _emptied(batch.column(nth)))
        self._batches.append(batch)

    def flush(self) -> None:
        """End the row group, if it has begun."""
        if self._batches:
            table = pa.Table.from_batches(self._batches)
            self._writer.write_table(table, row_group_size=len(table))
            self._groups.append({name: self._laid(pages) for name, pages in self._pages.items()})
            self._batches, self._pages = [], {}

    def close(self) -> None:
        """The file stays the caller's."""
        self.flush()
        self._through.held = bytearray()
        self._writer.close()
        self._through.finish(self._corrected)

    def _made(self, batch: Any) -> Iterator[tuple[str, Page]]:
        known: dict[bytes, Levels] = {}
        for name in self._long:
            column = batch.column(name)
            lengths = column.value_lengths().fill_null(0).to_numpy()
            present = column.is_valid().to_numpy(zero_copy_only=False)
            key = lengths.tobytes() + present.tobytes()
            if key not in known:
                known[key] = Levels(lengths, present)
            yield name, page_of(column, known[key], split=name in self._split)

    def _laid(self, pages: Sequence[Page]) -> "_Chunk":
        """Pages end to end in the file."""
        at, *_ = [self._through.add(page.body) for page in pages]
        sizes = (sum(page.size for page in pages), sum(len(page.body) for page in pages))
        return _Chunk(at, *sizes, sum(page.values for page in pages), pages[0].encoding)

    def _corrected(self, footer: bytes) -> bytes:
        """The footer with our pages in it, and everything where it lies."""
        document = unpacked(footer)
        for group, ours in zip(structs(document, 4), self._groups, strict=True):
            abouts = [about for _, about in (column[3] for column in structs(group, 1))]
            for about in abouts:
                self._place(about, ours)
            self._move(group, 5)
            for whole, part in ((2, 6), (6, 7)):
                group[whole] = (I64, sum(about[part][1] for about in abouts))
        return packed(document)

    def _place(self, about: Struct, ours: Mapping[str, "_Chunk"]) -> None:
        """A column's `ColumnMetaData`."""
        (first, *_) = about[3][1][1]
        found = ours.get(first.decode())
        if found is None:
            self._move(about, 9, 10, 11)
        else:
            _put_in(about, found)

    def _move(self, struct: Struct, *offsets: int) -> None:
        for field in offsets:
            if field in struct:
                struct[field] = (I64, self._through.place(struct[field][1]))


@dataclass(frozen=True, slots=True)
class _Chunk:
    """A column of a row group."""

    at: int
    """Where its first page begins."""
    size: int
    """Bytes without compression."""
    squeezed: int
    """Bytes in the file."""
    values: int
    encoding: int


class _Through:
    """What Arrow writes to: passes bytes on, and knows where they came to lie among ours."""

    def __init__(self, file: BinaryIO) -> None:
        self._file, self._theirs, self._ours = file, 0, 0
        self._edges: list[tuple[int, int]] = []
        self.held: bytearray | None = None
        self.closed = False

    def write(self, data: Any) -> int:
        size = memoryview(data).nbytes
        if self.held is None:
            self._file.write(data)
            self._theirs += size
        else:
            self.held += data
        return size

    def add(self, body: bytes) -> int:
        """Bytes of ours; where they begin."""
        self._file.write(body)
        at = self._theirs + self._ours
        self._ours += len(body)
        self._edges.append((self._theirs, self._ours))
        return at

    def place(self, theirs: int) -> int:
        """Where a byte of Arrow's lies."""
        nth = bisect_right(self._edges, theirs, key=itemgetter(0))
        return theirs + (self._edges[nth - 1][1] if nth else 0)

    def finish(self, corrected: Callable[[bytes], bytes]) -> None:
        """Write the footer that was held back, corrected."""
        assert self.held is not None
        size = int.from_bytes(self.held[-8:-4], "little")
        footer = corrected(bytes(self.held[-8 - size : -8]))
        self._file.write(bytes(self.held[: -8 - size]) + footer + len(footer).to_bytes(4, "little") + MAGIC)

    def flush(self) -> None:
        self._file.flush()

    def close(self) -> None:
        self.closed = True


def _put_in(about: Struct, chunk: _Chunk) -> None:
    for field in SAID_OF_PAGES & set(about):
        del about[field]
    about[2] = (LIST, (I32, sorted({RLE, chunk.encoding})))
    about[4] = (I32, ZSTD)
    about[5] = (I64, chunk.values)
    about[6] = (I64, chunk.size)
    about[7] = (I64, chunk.squeezed)
    about[9] = (I64, chunk.at)


def _emptied(column: Any) -> Any:
    """As many lists of the same type without an entry."""
    return pa.ListArray.from_arrays(
        np.zeros(len(column) + 1, np.int32), pa.array([], column.type.value_type), type=column.type
    )
