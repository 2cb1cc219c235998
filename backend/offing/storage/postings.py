"""The postings of texts, packed into one row per term and segment.

Each passage of a tenant has a number. A segment covers a range of numbers, and its row for a term lists the numbers
of the passages that contain the term, each with a weight. New texts get a new segment. Many small segments are merged
into a larger one, so that a term has few rows and little space is lost to their headers. Merging small sorted parts
into larger ones by size is O'Neil's log-structured merge (doi:10.1007/s002360050048).

Whoever writes the index holds the lock on the tenant's counter until the transaction ends, so segments are written one
transaction after another. Take the lock before any other that another writer could hold.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import numpy as np

from offing.storage.pool import Connection

ENTRY = np.dtype([("number", ">u4"), ("weight", "u1")])
"""An element of `posting.entries`: the number of a passage, and its weight in units of 1 / `MAX_WEIGHT`."""

MAX_WEIGHT = 255

SEGMENTS_PER_MERGE = 8
"""Number of successive small segments that are merged into one."""

SMALL_SEGMENT_PASSAGES = (256, 2_048)
"""Segments below the first size are merged with each other, then those below the second size."""

ALLOCATE = """
    insert into index_counter as c (tenant_id, next_passage, next_segment) values (%(tenant)s, %(count)s, 2)
    on conflict (tenant_id) do update
       set next_passage = c.next_passage + %(count)s, next_segment = c.next_segment + 1
    returning next_passage - %(count)s, next_segment - 1
"""

INSERT_SEGMENT = """
    insert into index_segment (tenant_id, segment, first_passage, end_passage) values (%s, %s, %s, %s)
"""

INSERT_POSTINGS = """
    insert into posting (tenant_id, segment, term, entries)
    select %s, %s, term, entries from unnest(%b::text[], %b::bytea[]) as p(term, entries)
"""
"""One statement for many rows, because row-level security does not allow `copy`."""

LIST_SEGMENTS = """
    select segment, first_passage, end_passage from index_segment where tenant_id = %s order by first_passage
"""

MERGE_POSTINGS = """
    insert into posting (tenant_id, segment, term, entries)
    select %(tenant)s, %(merged)s, p.term, string_agg(p.entries, '' order by s.first_passage)
      from posting p join index_segment s on s.tenant_id = p.tenant_id and s.segment = p.segment
     where p.tenant_id = %(tenant)s and p.segment = any(%(segments)s)
     group by p.term
"""

DELETE_SEGMENTS = "delete from index_segment where tenant_id = %s and segment = any(%s)"

LIST_RANGES = """
    select first_passage, passage_count from extracted_text
     where tenant_id = %s and id = any(%s) and first_passage is not null and passage_count > 0
     order by first_passage
"""

LOCK_COUNTER = "select 1 from index_counter where tenant_id = %s for update"

READ_SEGMENT = "select term, entries from posting where tenant_id = %s and segment = %s"

UPDATE_POSTINGS = """
    update posting p set entries = n.entries from unnest(%b::text[], %b::bytea[]) as n(term, entries)
     where p.tenant_id = %s and p.segment = %s and p.term = n.term
"""

DELETE_POSTINGS = "delete from posting where tenant_id = %s and segment = %s and term = any(%s)"

MAX_ROWS_PER_STATEMENT = 10_000


@dataclass(frozen=True, slots=True)
class PostingRow:
    """The passages of one text that contain a term."""

    term: str
    passages: Sequence[int]
    """Ordinals, ascending."""
    weights: Sequence[float]
    """Weights between 0 and 1."""


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
    texts: Iterable[tuple[int, Sequence[PostingRow]]],
) -> None:
    """Store the postings of texts as a new segment, and merge small segments when there are many.

    Each text is given by the number of its first passage and its postings, in the order of the numbers.
    """
    end = numbers.first_passage + passage_count
    await connection.execute(INSERT_SEGMENT, (tenant_id, numbers.segment, numbers.first_passage, end))
    entries = pack_postings(texts)
    terms = sorted(entries)
    for first in range(0, len(terms), MAX_ROWS_PER_STATEMENT):
        part = terms[first : first + MAX_ROWS_PER_STATEMENT]
        values = [bytes(entries[term]) for term in part]
        await connection.execute(INSERT_POSTINGS, (tenant_id, numbers.segment, part, values))
    await _merge_segments(connection, tenant_id)


def pack_postings(texts: Iterable[tuple[int, Sequence[PostingRow]]]) -> dict[str, bytearray]:
    """Return the entries of every term."""
    packed: dict[str, bytearray] = {}
    for first_passage, postings in texts:
        counts = [len(posting.passages) for posting in postings]
        entries = np.empty(sum(counts), ENTRY)
        entries["number"] = [ordinal for posting in postings for ordinal in posting.passages]
        entries["number"] += first_passage
        weights = np.array([weight for posting in postings for weight in posting.weights], np.float64)
        entries["weight"] = np.clip(np.rint(weights * MAX_WEIGHT), 1, MAX_WEIGHT)
        data, at = entries.tobytes(), 0
        for posting, count in zip(postings, counts, strict=True):
            end = at + count * ENTRY.itemsize
            packed.setdefault(posting.term, bytearray()).extend(data[at:end])
            at = end
    return packed


def choose_merge(segments: Sequence[SegmentRow]) -> Sequence[SegmentRow]:
    """Return the last segments that should become one. Empty if there are few small ones at the end."""
    for size in SMALL_SEGMENT_PASSAGES:
        count = 0
        while count < len(segments) and segments[-1 - count].passage_count < size:
            count += 1
        if count >= SEGMENTS_PER_MERGE:
            return segments[-count:]
    return ()


async def _merge_segments(connection: Connection, tenant_id: UUID) -> None:
    rows = await (await connection.execute(LIST_SEGMENTS, (tenant_id,))).fetchall()
    small = choose_merge([SegmentRow(*row) for row in rows])
    if not small:
        return
    numbers = await allocate_numbers(connection, tenant_id, 0)
    first, end = small[0].first_passage, small[-1].end_passage
    await connection.execute(INSERT_SEGMENT, (tenant_id, numbers.segment, first, end))
    segments = [row.segment for row in small]
    values = {"tenant": tenant_id, "merged": numbers.segment, "segments": segments}
    await connection.execute(MERGE_POSTINGS, values, prepare=False)
    await connection.execute(DELETE_SEGMENTS, (tenant_id, segments))


async def delete_postings(connection: Connection, tenant_id: UUID, text_ids: Sequence[UUID]) -> None:
    """Remove these texts from all rows of the index. The rows of `extracted_text` must still exist."""
    await connection.execute(LOCK_COUNTER, (tenant_id,))
    ranges = await (await connection.execute(LIST_RANGES, (tenant_id, list(text_ids)))).fetchall()
    if not ranges:
        return
    firsts = np.array([first for first, _ in ranges])
    ends = firsts + np.array([count for _, count in ranges])
    rows = await (await connection.execute(LIST_SEGMENTS, (tenant_id,))).fetchall()
    for segment in (SegmentRow(*row) for row in rows):
        if np.any((firsts < segment.end_passage) & (ends > segment.first_passage)):
            await _delete_from_segment(connection, tenant_id, segment.segment, firsts, ends)


async def _delete_from_segment(
    connection: Connection, tenant_id: UUID, segment: int, firsts: Any, ends: Any
) -> None:
    """Remove the passages of these ranges from a segment. Ranges are ascending and do not overlap."""
    cursor = connection.cursor(binary=True)
    remaining: dict[str, bytes] = {}
    for term, entries in await (await cursor.execute(READ_SEGMENT, (tenant_id, segment))).fetchall():
        decoded = np.frombuffer(entries, ENTRY)
        at = np.searchsorted(firsts, decoded["number"], side="right") - 1
        erased = (at >= 0) & (decoded["number"] < ends[at])
        if erased.any():
            remaining[term] = decoded[~erased].tobytes()
    changed = {term: entries for term, entries in remaining.items() if entries}
    gone = [term for term in remaining if term not in changed]
    await connection.execute(UPDATE_POSTINGS, (list(changed), list(changed.values()), tenant_id, segment))
    await connection.execute(DELETE_POSTINGS, (tenant_id, segment, gone))
