"""The postings of texts, packed into few rows.

Each passage of a tenant has a number. A segment covers a range of numbers and holds, for every term, the places of the
passages that contain it, each with a weight. The terms of a segment are distributed over buckets by their hash, and a
bucket is one row. A term with many passages has a row of its own. So a search reads two rows per term and segment,
whatever the number of texts, and hardly any space is lost to the headers of rows.

New texts get a new segment. Many small segments are merged into a larger one, like the components of O'Neil's
log-structured merge tree (doi:10.1007/s002360050048). Erasure writes the rows of a text's terms again without it.

Whoever writes the index holds the lock on the tenant's counter until the transaction ends, so segments are written one
transaction after another. Take the locks of existing sources and texts before it.
"""

import hashlib
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import takewhile
from typing import Any, NamedTuple
from uuid import UUID

import numpy as np

from offing.storage.pool import Connection

NARROW_ENTRY = np.dtype([("place", ">u2"), ("weight", "u1")])
WIDE_ENTRY = np.dtype([("place", ">u4"), ("weight", "u1")])
"""A passage that contains a term: its number minus the segment's first number, and its weight in units of
1 / `MAX_WEIGHT`. Segments of up to `NARROW_PASSAGES` passages have narrow entries.
"""

NARROW_PASSAGES = 65_536

MAX_WEIGHT = 255

BUCKET_BYTES = 1_000
"""Average size of a bucket. Rows of more than 2 kB would be stored out of line."""

OWN_ROW_BYTES = 500
"""Size of a term's entries above which it has its own row, so that searches for other terms do not read it."""

SEGMENTS_PER_MERGE = 8
"""Number of successive small segments that are merged into one."""

SMALL_SEGMENT_PASSAGES = (256, 2_048, 16_384)
"""Segments below the first size are merged with each other, then those below the second size, and so on. As many are
merged as have narrow entries together.
"""

ALLOCATE = """
    insert into index_counter as c (tenant_id, next_passage, next_segment) values (%(tenant)s, %(count)s, 2)
    on conflict (tenant_id) do update
       set next_passage = c.next_passage + %(count)s, next_segment = c.next_segment + 1
    returning next_passage - %(count)s, next_segment - 1
"""

INSERT_SEGMENT = """
    insert into index_segment (tenant_id, segment, first_passage, end_passage, bucket_count)
    values (%s, %s, %s, %s, %s)
"""

INSERT_BUCKETS = """
    insert into posting_bucket (tenant_id, segment, bucket, body)
    select %s, %s, bucket, body from unnest(%b::integer[], %b::bytea[]) as b(bucket, body)
"""
"""One statement for many rows, because row-level security does not allow `copy`."""

MAX_ROWS_PER_STATEMENT = 10_000

LIST_SEGMENTS = """
    select segment, first_passage, end_passage from index_segment where tenant_id = %s order by first_passage
"""

READ_SEGMENT = "select bucket, body from posting_bucket where tenant_id = %s and segment = %s order by bucket"

DELETE_SEGMENTS = "delete from index_segment where tenant_id = %s and segment = any(%s)"

UPDATE_BUCKETS = """
    update posting_bucket p set body = b.body
      from unnest(%(buckets)b::integer[], %(bodies)b::bytea[]) as b(bucket, body)
     where p.tenant_id = %(tenant)s and p.segment = %(segment)s and p.bucket = b.bucket
"""

DELETE_EMPTY_BUCKETS = "delete from posting_bucket where tenant_id = %s and segment = %s and octet_length(body) = 0"

LIST_RANGES = """
    select first_passage, passage_count from extracted_text
     where tenant_id = %s and id = any(%s) and first_passage is not null and passage_count > 0
     order by first_passage
"""

LOCK_COUNTER = "select 1 from index_counter where tenant_id = %s for update"

READ_POSTINGS = """
    with searched as (
      select distinct s.segment, s.first_passage, s.end_passage, b.bucket
        from index_segment s cross join unnest(%(hashes)s::integer[]) as t(hash)
             cross join lateral (values (t.hash %% s.bucket_count), (-1 - t.hash)) as b(bucket)
       where s.tenant_id = %(tenant)s)
    select s.first_passage, s.end_passage, p.body
      from searched s join posting_bucket p on p.segment = s.segment and p.bucket = s.bucket
     where p.tenant_id = %(tenant)s
"""
"""One statement, because another transaction may merge segments between two."""


class TextPostings(NamedTuple):
    """Which passages of one text contain which terms."""

    terms: Sequence[str]
    counts: Sequence[int]
    """Number of passages that contain each term."""
    ordinals: Sequence[int]
    """Ordinals of these passages, ascending, for one term after the other."""
    weights: Sequence[float]
    """Weight of the term in each of these passages, between 0 and 1."""


@dataclass(frozen=True, slots=True)
class SegmentRow:
    segment: int
    first_passage: int
    end_passage: int
    """End of its range of passage numbers, excluded."""

    @property
    def passage_count(self) -> int:
        return self.end_passage - self.first_passage


@dataclass(frozen=True, slots=True)
class NumberRange:
    """The numbers that a transaction gives to passages, and the segment of their postings."""

    first_passage: int
    segment: int


PackedPostings = Mapping[str, bytes | bytearray]
"""The entries of every term, in the order of their places."""


async def allocate_numbers(connection: Connection, tenant_id: UUID, passage_count: int) -> NumberRange:
    """Take the next passage numbers and lock the tenant's index until the transaction ends."""
    values = {"tenant": tenant_id, "count": passage_count}
    row = await (await connection.execute(ALLOCATE, values)).fetchone()
    assert row is not None
    return NumberRange(*row)


async def insert_segment(
    connection: Connection,
    tenant_id: UUID,
    numbers: NumberRange,
    passage_count: int,
    texts: Iterable[tuple[int, TextPostings]],
) -> None:
    """Store the postings of texts as a new segment, and merge small segments when there are many.

    Each text is given by the number of its first passage and its postings, in the order of the numbers.
    """
    first = numbers.first_passage
    segment = SegmentRow(numbers.segment, first, first + passage_count)
    packed = pack_postings(segment, texts)
    await _write_segment(connection, tenant_id, segment, packed)
    rows = await (await connection.execute(LIST_SEGMENTS, (tenant_id,))).fetchall()
    if small := choose_merge([SegmentRow(*row) for row in rows]):
        await _merge_segments(connection, tenant_id, small)


def _entry_type(segment: SegmentRow) -> Any:
    return NARROW_ENTRY if segment.passage_count <= NARROW_PASSAGES else WIDE_ENTRY


def pack_postings(segment: SegmentRow, texts: Iterable[tuple[int, TextPostings]]) -> PackedPostings:
    """Return the postings of texts as entries of a segment."""
    packed: dict[str, bytearray] = {}
    for first_passage, postings in texts:
        entries: Any = np.empty(len(postings.ordinals), _entry_type(segment))
        entries["place"] = np.array(postings.ordinals, np.int64) + (first_passage - segment.first_passage)
        weights = np.array(postings.weights, np.float64)
        entries["weight"] = np.clip(np.rint(weights * MAX_WEIGHT), 1, MAX_WEIGHT)
        _add_entries(packed, postings.terms, postings.counts, entries)
    return packed


def _add_entries(packed: dict[str, bytearray], terms: Sequence[str], counts: Sequence[int], entries: Any) -> None:
    data, size, at = entries.tobytes(), entries.dtype.itemsize, 0
    for term, count in zip(terms, counts, strict=True):
        end = at + count * size
        if (known := packed.get(term)) is None:
            packed[term] = bytearray(data[at:end])
        else:
            known += data[at:end]
        at = end


async def _write_segment(connection: Connection, tenant_id: UUID, segment: SegmentRow, packed: PackedPostings) -> None:
    bucket_count, bodies = pack_segment(segment, packed)
    values = (tenant_id, segment.segment, segment.first_passage, segment.end_passage, bucket_count)
    await connection.execute(INSERT_SEGMENT, values)
    numbers = sorted(bodies)
    for first in range(0, len(numbers), MAX_ROWS_PER_STATEMENT):
        part = numbers[first : first + MAX_ROWS_PER_STATEMENT]
        values = (tenant_id, segment.segment, part, [bodies[number] for number in part])
        await connection.execute(INSERT_BUCKETS, values)


def pack_segment(segment: SegmentRow, packed: PackedPostings) -> tuple[int, dict[int, bytes]]:
    """Return the number of shared buckets of a segment, and the body of each bucket."""
    size = _entry_type(segment).itemsize
    bucket_count, buckets = distribute_terms(packed)
    return bucket_count, {
        number: pack_bucket([(term, packed[term]) for term in terms], size) for number, terms in buckets.items()
    }


@lru_cache(maxsize=65_536)
def hash_term(term: str) -> int:
    """Return 28 bits that decide the bucket of a term."""
    digest = hashlib.md5(term.encode(), usedforsecurity=False).digest()
    return int.from_bytes(digest[:4]) >> 4


def distribute_terms(packed: PackedPostings) -> tuple[int, dict[int, list[str]]]:
    """Return the number of shared buckets of a segment, and the terms of each bucket.

    A bucket below 0 belongs to the terms with one hash.
    """
    total = sum(len(term) + len(entries) + 5 for term, entries in packed.items())
    bucket_count = max(1, total // BUCKET_BYTES)
    buckets: dict[int, list[str]] = {}
    for term, entries in packed.items():
        number = hash_term(term)
        buckets.setdefault(-1 - number if len(entries) > OWN_ROW_BYTES else number % bucket_count, []).append(term)
    return bucket_count, buckets


def pack_bucket(postings: Sequence[tuple[str, bytes | bytearray]], entry_bytes: int) -> bytes:
    """Return the body of a bucket: the length of its terms, the terms, how many entries each has, and the entries."""
    terms = "\n".join(term for term, _ in postings).encode()
    counts = struct.pack(f">{len(postings)}I", *(len(entries) // entry_bytes for _, entries in postings))
    return b"".join([struct.pack(">I", len(terms)), terms, counts, *(entries for _, entries in postings)])


def unpack_bucket(body: bytes, segment: SegmentRow) -> tuple[list[str], list[int], Any]:
    """Return the terms of a bucket, how many entries each has, and the array of all entries."""
    (length,) = struct.unpack_from(">I", body)
    terms = body[4 : 4 + length].decode().split("\n")
    at = 4 + length + 4 * len(terms)
    counts = struct.unpack_from(f">{len(terms)}I", body, 4 + length)
    return terms, list(counts), np.frombuffer(body, _entry_type(segment), offset=at)


def choose_merge(segments: Sequence[SegmentRow]) -> Sequence[SegmentRow]:
    """Return the last segments that should become one. Empty if there are few small ones at the end."""
    for size in SMALL_SEGMENT_PASSAGES:
        small = list(takewhile(partial(_has_fewer_passages, size), reversed(segments)))
        if len(small) >= SEGMENTS_PER_MERGE:
            end = small[0].end_passage
            count = sum(end - segment.first_passage <= NARROW_PASSAGES for segment in small)
            return segments[-max(2, count) :]
    return ()


def _has_fewer_passages(count: int, segment: SegmentRow) -> bool:
    return segment.passage_count < count


async def _merge_segments(connection: Connection, tenant_id: UUID, segments: Sequence[SegmentRow]) -> None:
    """Replace successive segments by one."""
    numbers = await allocate_numbers(connection, tenant_id, 0)
    merged = SegmentRow(numbers.segment, segments[0].first_passage, segments[-1].end_passage)
    packed: dict[str, bytearray] = {}
    for segment in segments:
        buckets = await _read_segment(connection, tenant_id, segment)
        _add_segment(packed, [body for _, body in buckets], segment, merged)
    await _write_segment(connection, tenant_id, merged, packed)
    await connection.execute(DELETE_SEGMENTS, (tenant_id, [segment.segment for segment in segments]))


def _add_segment(
    packed: dict[str, bytearray], bodies: Iterable[bytes], segment: SegmentRow, merged: SegmentRow
) -> None:
    """Add the entries of a segment's buckets to those of the merged segment."""
    for body in bodies:
        terms, counts, entries = unpack_bucket(body, segment)
        moved: Any = np.empty(len(entries), _entry_type(merged))
        moved["place"] = entries["place"].astype(np.int64) + (segment.first_passage - merged.first_passage)
        moved["weight"] = entries["weight"]
        _add_entries(packed, terms, counts, moved)


async def _read_segment(connection: Connection, tenant_id: UUID, segment: SegmentRow) -> list[tuple[int, bytes]]:
    cursor = connection.cursor(binary=True)
    await cursor.execute(READ_SEGMENT, (tenant_id, segment.segment))
    return await cursor.fetchall()


async def delete_postings(connection: Connection, tenant_id: UUID, text_ids: Sequence[UUID]) -> None:
    """Remove texts from the index. Their rows in `extracted_text` must still exist."""
    await connection.execute(LOCK_COUNTER, (tenant_id,))
    ranges = await (await connection.execute(LIST_RANGES, (tenant_id, list(text_ids)))).fetchall()
    if not ranges:
        return
    rows = await (await connection.execute(LIST_SEGMENTS, (tenant_id,))).fetchall()
    for segment in (SegmentRow(*row) for row in rows):
        inside = [(first, count) for first, count in ranges if segment.first_passage <= first < segment.end_passage]
        if inside:
            await _remove_from_segment(connection, tenant_id, segment, inside)


async def _remove_from_segment(
    connection: Connection, tenant_id: UUID, segment: SegmentRow, ranges: Sequence[tuple[int, int]]
) -> None:
    """Write those buckets of a segment again that have entries of these passages (first number and count)."""
    numbers, bodies = list[int](), list[bytes]()
    for number, body in await _read_segment(connection, tenant_id, segment):
        if (changed := remove_passages(body, segment, ranges)) is not None:
            numbers.append(number)
            bodies.append(changed)
    await connection.execute(UPDATE_BUCKETS, {"tenant": tenant_id, "segment": segment.segment, "buckets": numbers,
                                              "bodies": bodies})  # fmt: skip
    await connection.execute(DELETE_EMPTY_BUCKETS, (tenant_id, segment.segment))


def remove_passages(body: bytes, segment: SegmentRow, ranges: Sequence[tuple[int, int]]) -> bytes | None:
    """Return the body of a bucket without the entries of these passages, given by first number and count.

    `None` means that it has none of them. Empty if nothing is left.
    """
    terms, counts, entries = unpack_bucket(body, segment)
    numbers = entries["place"].astype(np.int64) + segment.first_passage
    remains = np.ones(len(entries), np.bool_)
    for first, count in ranges:
        remains &= (numbers < first) | (numbers >= first + count)
    if remains.all():
        return None
    term_numbers = np.repeat(np.arange(len(terms)), counts)[remains]
    packed: dict[str, bytearray] = {}
    _add_entries(packed, terms, np.bincount(term_numbers, minlength=len(terms)).tolist(), entries[remains])
    left = [(term, data) for term, data in packed.items() if data]
    return pack_bucket(left, entries.dtype.itemsize) if left else b""


@dataclass(frozen=True, slots=True)
class TermEntries:
    """The passages of one segment that contain a term."""

    first_passage: int
    """The segment's first number, from which places count."""
    entries: Any
    """Array of `NARROW_ENTRY` or `WIDE_ENTRY`."""


async def read_postings(connection: Connection, tenant_id: UUID, terms: Iterable[str]) -> dict[str, list[TermEntries]]:
    """Return the entries of each term, by segment. Terms that no passage contains are left out."""
    searched = set(terms)
    postings: dict[str, list[TermEntries]] = {}
    values = {"tenant": tenant_id, "hashes": [hash_term(term) for term in sorted(searched)]}
    async with connection.cursor(binary=True) as cursor:
        await cursor.execute(READ_POSTINGS, values, prepare=False)
        for first, end, body in await cursor.fetchall():
            for term, entries in _iter_entries(body, SegmentRow(0, first, end), searched):
                postings.setdefault(term, []).append(TermEntries(first, entries))
    return postings


def _iter_entries(body: bytes, segment: SegmentRow, searched: set[str]) -> Iterator[tuple[str, Any]]:
    terms, counts, entries = unpack_bucket(body, segment)
    for number in [number for number, term in enumerate(terms) if term in searched]:
        at = sum(counts[:number])
        yield terms[number], entries[at : at + counts[number]]
