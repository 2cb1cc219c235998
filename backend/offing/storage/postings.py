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

import asyncio
import hashlib
import struct
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count, pairwise, takewhile
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


class PostingRuns(NamedTuple):
    """Terms with their entries. A term may occur several times, with other entries each time."""

    terms: Sequence[str]
    counts: Any
    """Array of integers: how many entries each of the terms has."""
    entries: Any
    """Array of `NARROW_ENTRY` or `WIDE_ENTRY`: the entries of one term after the other."""


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
    await _write_segment(connection, tenant_id, segment, [pack_text(segment, *text) for text in texts])
    rows = await (await connection.execute(LIST_SEGMENTS, (tenant_id,))).fetchall()
    if small := choose_merge([SegmentRow(*row) for row in rows]):
        await _merge_segments(connection, tenant_id, small)


def _entry_type(segment: SegmentRow) -> Any:
    return NARROW_ENTRY if segment.passage_count <= NARROW_PASSAGES else WIDE_ENTRY


def pack_text(segment: SegmentRow, first_passage: int, postings: TextPostings) -> PostingRuns:
    """Return the postings of a text as entries of a segment."""
    entries: Any = np.empty(len(postings.ordinals), _entry_type(segment))
    entries["place"] = np.asarray(postings.ordinals, np.int64) + (first_passage - segment.first_passage)
    weights = np.asarray(postings.weights, np.float64)
    entries["weight"] = np.clip(np.rint(weights * MAX_WEIGHT), 1, MAX_WEIGHT)
    return PostingRuns(postings.terms, np.asarray(postings.counts, np.int64), entries)


async def _write_segment(
    connection: Connection, tenant_id: UUID, segment: SegmentRow, runs: Sequence[PostingRuns]
) -> None:
    # In a thread, because the postings of many texts take so long that other tasks would notice.
    bucket_count, bodies = await asyncio.to_thread(pack_segment, segment, runs)
    values = (tenant_id, segment.segment, segment.first_passage, segment.end_passage, bucket_count)
    await connection.execute(INSERT_SEGMENT, values)
    numbers = list(bodies)
    for first in range(0, len(numbers), MAX_ROWS_PER_STATEMENT):
        part = numbers[first : first + MAX_ROWS_PER_STATEMENT]
        values = (tenant_id, segment.segment, part, [bodies[number] for number in part])
        await connection.execute(INSERT_BUCKETS, values)


def pack_segment(segment: SegmentRow, runs: Sequence[PostingRuns]) -> tuple[int, dict[int, bytes]]:
    """Return the number of shared buckets of a segment, and the body of each bucket by its number, ascending.

    The entries of a term stay in the order of the runs.
    """
    names, run_counts, entries = _join_runs(segment, runs)
    numbers = defaultdict[str, int](count().__next__)
    run_terms = np.fromiter(map(numbers.__getitem__, names), np.int64, len(names))
    terms = list(numbers)
    counts: Any = np.bincount(run_terms, run_counts, len(terms)).astype(np.int64)
    bucket_count, buckets = distribute_terms(terms, counts, entries.itemsize)
    order = np.argsort(buckets, kind="stable")
    places = np.empty_like(order)
    places[order] = np.arange(len(order))
    positions = _list_positions(run_counts, np.argsort(places[run_terms], kind="stable"))
    sorted_terms: list[str] = [terms[number] for number in order.tolist()]
    bodies = _iter_bodies(buckets[order], PostingRuns(sorted_terms, counts[order], entries[positions]))
    return bucket_count, dict(bodies)


def _join_runs(segment: SegmentRow, runs: Iterable[PostingRuns]) -> PostingRuns:
    """Return all runs as one. `segment` is that to which their entries belong."""
    entry_type = _entry_type(segment)
    terms, counts, entries = list[str](), [np.empty(0, np.int64)], [np.empty(0, entry_type)]
    for run in runs:
        terms += run.terms
        counts.append(run.counts)
        entries.append(run.entries)
    return PostingRuns(terms, np.concatenate(counts), np.concatenate(entries, dtype=entry_type))


def _list_positions(counts: Any, order: Any) -> Any:
    """Return the positions of the entries of runs with these counts, for the runs in another order."""
    starts, sorted_counts = np.cumsum(counts) - counts, counts[order]
    new_starts = np.cumsum(sorted_counts) - sorted_counts
    moves: Any = np.repeat(starts[order] - new_starts, sorted_counts)
    return moves + np.arange(len(moves))


def _iter_bodies(buckets: Any, postings: PostingRuns) -> Iterator[tuple[int, bytes]]:
    """Yield the number and the body of each bucket, given the bucket of each term, ascending."""
    terms, counts, entries = postings
    numbers, firsts = np.unique(buckets, return_index=True)
    bounds: Any = np.append(firsts, len(terms))
    entry_bounds = np.append(0, np.cumsum(counts))[bounds]
    ranges = zip(pairwise(bounds.tolist()), pairwise(entry_bounds.tolist()), strict=True)
    for number, ((first, last), (begin, end)) in zip(numbers.tolist(), ranges, strict=True):
        yield number, pack_bucket(terms[first:last], counts[first:last], entries[begin:end])


def hash_terms(terms: Iterable[str]) -> Any:
    """Return an array of 28 bits per term, which decide its bucket."""
    digests = b"".join([hashlib.md5(term.encode(), usedforsecurity=False).digest() for term in terms])
    heads: Any = np.frombuffer(digests, ">u4")[::4]
    return heads.astype(np.int64) >> 4


def distribute_terms(terms: Sequence[str], counts: Any, entry_bytes: int) -> tuple[int, Any]:
    """Return the number of shared buckets of a segment, and an array of the bucket of each term.

    A bucket below 0 belongs to the terms with one hash.
    """
    total = sum(map(len, terms)) + int(counts.sum()) * entry_bytes + 5 * len(terms)
    bucket_count = max(1, total // BUCKET_BYTES)
    hashes, has_own = hash_terms(terms), counts * entry_bytes > OWN_ROW_BYTES
    buckets = hashes % bucket_count
    buckets[has_own] = -1 - hashes[has_own]
    return bucket_count, buckets


def pack_bucket(terms: Sequence[str], counts: Any, entries: Any) -> bytes:
    """Return the body of a bucket: the length of its terms, the terms, how many entries each has, and the entries."""
    text = "\n".join(terms).encode()
    return b"".join([struct.pack(">I", len(text)), text, counts.astype(">u4").tobytes(), entries.tobytes()])


def unpack_bucket(body: bytes, segment: SegmentRow) -> PostingRuns:
    """Return the terms of a bucket, how many entries each has, and the array of all entries."""
    (length,) = struct.unpack_from(">I", body)
    terms = body[4 : 4 + length].decode().split("\n")
    counts = np.frombuffer(body, ">u4", len(terms), 4 + length).astype(np.int64)
    return PostingRuns(terms, counts, np.frombuffer(body, _entry_type(segment), offset=4 + length + 4 * len(terms)))


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
    runs = list[PostingRuns]()
    for segment in segments:
        bodies = [body for _, body in await _read_segment(connection, tenant_id, segment)]
        runs.append(await asyncio.to_thread(move_buckets, bodies, segment, merged))
    await _write_segment(connection, tenant_id, merged, runs)
    await connection.execute(DELETE_SEGMENTS, (tenant_id, [segment.segment for segment in segments]))


def move_buckets(bodies: Iterable[bytes], segment: SegmentRow, merged: SegmentRow) -> PostingRuns:
    """Return the postings of a segment's buckets as entries of the merged segment."""
    terms, counts, entries = _join_runs(segment, (unpack_bucket(body, segment) for body in bodies))
    moved: Any = np.empty(len(entries), _entry_type(merged))
    moved["place"] = entries["place"].astype(np.int64) + (segment.first_passage - merged.first_passage)
    moved["weight"] = entries["weight"]
    return PostingRuns(terms, counts, moved)


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
    for first, passage_count in ranges:
        remains &= (numbers < first) | (numbers >= first + passage_count)
    if remains.all():
        return None
    term_numbers = np.repeat(np.arange(len(terms)), counts)[remains]
    left: Any = np.bincount(term_numbers, minlength=len(terms))
    present = [term for term, number in zip(terms, left.tolist(), strict=True) if number]
    return pack_bucket(present, left[left > 0], entries[remains]) if present else b""


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
    values = {"tenant": tenant_id, "hashes": hash_terms(sorted(searched)).tolist()}
    async with connection.cursor(binary=True) as cursor:
        await cursor.execute(READ_POSTINGS, values, prepare=False)
        for first, end, body in await cursor.fetchall():
            for term, entries in _iter_entries(body, SegmentRow(0, first, end), searched):
                postings.setdefault(term, []).append(TermEntries(first, entries))
    return postings


def _iter_entries(body: bytes, segment: SegmentRow, searched: set[str]) -> Iterator[tuple[str, Any]]:
    terms, counts, entries = unpack_bucket(body, segment)
    ends = np.cumsum(counts).tolist()
    for number in [number for number, term in enumerate(terms) if term in searched]:
        yield terms[number], entries[ends[number] - int(counts[number]) : ends[number]]
