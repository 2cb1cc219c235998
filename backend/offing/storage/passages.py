"""Passages of texts, and ranges of stored texts."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import UUID

from psycopg.rows import class_row

from offing.core.tool import SourceSpan
from offing.storage.pool import Connection

if TYPE_CHECKING:  # NumPy is slow to import, and most readers of passages need no postings
    from offing.storage.postings import TextPostings

DELETE_PASSAGES = """
    with vectors as (delete from text_vector where tenant_id = %(tenant)s and text_id = any(%(text_ids)s))
    delete from passage where tenant_id = %(tenant)s and text_id = any(%(text_ids)s)
"""

INSERT_PASSAGES = """
    insert into passage (text_id, ordinal, tenant_id, start_char, end_char, heading)
    select text_id, ordinal, %s, start_char, end_char, heading
      from unnest(%b::uuid[], %b::integer[], %b::integer[], %b::integer[], %b::text[])
           as p(text_id, ordinal, start_char, end_char, heading)
"""

SET_INDEX_VERSION = """
    update extracted_text a set index_version = n.version, passage_count = n.passage_count, first_passage = n.first
      from unnest(%s::uuid[], %s::integer[], %s::integer[], %s::integer[]) as n(id, version, passage_count, first)
     where a.tenant_id = %s and a.id = n.id
"""

SET_SOURCE_NUMBERS = """
    update source s set first_passage = a.first_passage, passage_count = a.passage_count
      from extracted_text a
     where a.tenant_id = %s and a.id = any(%s) and s.tenant_id = a.tenant_id and s.text_id = a.id
"""

READ_SPANS = """
    select w.number, substring(a.body from w.start_at + 1 for w.end_at - w.start_at)
      from unnest(%s::uuid[], %s::integer[], %s::integer[]) with ordinality as w(id, start_at, end_at, number)
      join extracted_text a on a.id = w.id and a.tenant_id = %s
     where w.start_at >= 0 and w.end_at >= w.start_at and w.end_at <= a.length_chars
"""

READ_TEXT_WINDOWS = """
    select w.number, w.start_at as start, a.length_chars as text_length,
           substring(a.body from w.start_at + 1 for w.end_at - w.start_at) as text
      from unnest(%s::uuid[], %s::integer[], %s::integer[]) with ordinality as w(id, start_at, end_at, number)
      join extracted_text a on a.id = w.id and a.tenant_id = %s
"""
"""An end after the end of the text is allowed."""

FIND_WINDOW = """
    select s.id as source_id, s.title, s.name, a.id as text_id, a.length_chars as text_length, a.snapshot_sha256,
           coalesce(a.published, '') as published,
           substring(a.body from %(start)s + 1 for %(length)s) as text
      from source s join extracted_text a on a.id = s.text_id
     where s.tenant_id = %(tenant)s and s.removed_at is null
       and (s.id::text = %(wanted)s or a.id::text = %(wanted)s or s.name = %(wanted)s or s.title = %(wanted)s)
       and (%(collections)s::text[] = '{}' or s.collection = any(%(collections)s))
       and (%(sources)s::uuid[] = '{}' or s.id = any(%(sources)s))
     order by s.id::text = %(wanted)s desc, a.id::text = %(wanted)s desc, s.name = %(wanted)s desc, s.added_at desc
     limit 1
"""
"""By the id of a source or a text, else by name, else by title. If several sources match, the
latest one.
"""

FIND_TEXT_WINDOW = """
    select s.id as source_id, s.title, s.name, a.id as text_id, a.length_chars as text_length, a.snapshot_sha256,
           coalesce(a.published, '') as published,
           substring(a.body from %(start)s + 1 for %(length)s) as text
      from extracted_text a
      join lateral (select id, title, name from source where text_id = a.id
                    union all
                    select o.id, o.title, o.name from source_history p join source o on o.id = p.source_id
                     where p.text_id = a.id limit 1) s on true
     where a.tenant_id = %(tenant)s and a.id = %(text_id)s
"""
"""A range of a text that belongs to a source now or in its history."""


@dataclass(frozen=True, slots=True)
class PassageRow:
    start: int
    end: int
    heading: str


@dataclass(frozen=True, slots=True)
class TextIndex:
    """The document index of a text."""

    text_id: UUID
    version: int
    first_passage: int
    """Number of its first passage among all passages of the tenant."""
    passages: Sequence[PassageRow]
    postings: "TextPostings"


@dataclass(frozen=True, slots=True)
class TextWindowRow:
    """A range of a source's text."""

    source_id: UUID
    title: str
    name: str
    text_id: UUID
    text_length: int
    """Length of the whole text in code points."""
    snapshot_sha256: bytes
    text: str
    published: str = ""
    """Date of the document as YYYY, YYYY-MM or YYYY-MM-DD. Empty means unknown."""


@dataclass(frozen=True, slots=True)
class SpanWindowRow:
    """A range of a text."""

    number: int
    """Position of the requested range, from 1."""
    start: int
    text_length: int
    """Length of the whole text in code points."""
    text: str


async def insert_passages(connection: Connection, tenant_id: UUID, indexes: Sequence[TextIndex]) -> None:
    """Store the passages of texts that have none yet."""
    rows = [(index.text_id, ordinal, p) for index in indexes for ordinal, p in enumerate(index.passages)]
    from offing.storage.postings import MAX_ROWS_PER_STATEMENT

    for first in range(0, len(rows), MAX_ROWS_PER_STATEMENT):
        part = rows[first : first + MAX_ROWS_PER_STATEMENT]
        text_ids, ordinals = [text_id for text_id, _, _ in part], [ordinal for _, ordinal, _ in part]
        starts, ends, headings = [p.start for *_, p in part], [p.end for *_, p in part], [p.heading for *_, p in part]
        await connection.execute(INSERT_PASSAGES, (tenant_id, text_ids, ordinals, starts, ends, headings))


async def delete_indexes(connection: Connection, tenant_id: UUID, text_ids: Sequence[UUID]) -> None:
    """Delete the passages, postings and vectors of texts."""
    from offing.storage.postings import delete_postings

    await delete_postings(connection, tenant_id, text_ids)
    await connection.execute(DELETE_PASSAGES, {"tenant": tenant_id, "text_ids": list(text_ids)})


async def set_index_versions(connection: Connection, tenant_id: UUID, indexes: Sequence[TextIndex]) -> None:
    """Note the version and the passage numbers of a document index that replaces an earlier one."""
    ids, versions = [index.text_id for index in indexes], [index.version for index in indexes]
    counts = [len(index.passages) for index in indexes]
    firsts = [index.first_passage if index.passages else None for index in indexes]
    await connection.execute(SET_INDEX_VERSION, (ids, versions, counts, firsts, tenant_id))
    await connection.execute(SET_SOURCE_NUMBERS, (tenant_id, ids))


async def read_spans(connection: Connection, tenant_id: UUID, spans: Sequence[SourceSpan]) -> tuple[str | None, ...]:
    """Return the exact text of each span, in the given order.

    `None` means that there is no such text or that it is too short.
    """
    ids, starts, ends = [s.text_id for s in spans], [s.start for s in spans], [s.end for s in spans]
    cursor = await connection.execute(READ_SPANS, (ids, starts, ends, tenant_id))
    texts: dict[int, str] = {number: text async for number, text in cursor}
    return tuple(texts.get(number) for number in range(1, len(spans) + 1))


async def read_text_windows(
    connection: Connection, tenant_id: UUID, spans: Sequence[SourceSpan]
) -> dict[int, SpanWindowRow]:
    """Return the text of each span by its position, from 0. A span may end after its text does.

    A span of an unknown text is left out.
    """
    ids, starts, ends = [s.text_id for s in spans], [s.start for s in spans], [s.end for s in spans]
    async with connection.cursor(row_factory=class_row(SpanWindowRow)) as cursor:
        await cursor.execute(READ_TEXT_WINDOWS, (ids, starts, ends, tenant_id))
        return {row.number - 1: row async for row in cursor}


async def find_window(
    connection: Connection,
    tenant_id: UUID,
    source_ref: str,
    start: int,
    length: int,
    *,
    collections: Sequence[str] = (),
    source_ids: Sequence[UUID] = (),
) -> TextWindowRow | None:
    """Return `length` code points from `start` on of the source with this id, name or title.

    `None` means that there is no such source.
    """
    values = {"tenant": tenant_id, "wanted": source_ref, "start": start, "length": length}
    async with connection.cursor(row_factory=class_row(TextWindowRow)) as cursor:
        await cursor.execute(FIND_WINDOW, {**values, "collections": list(collections), "sources": list(source_ids)})
        return await cursor.fetchone()


async def find_text_window(
    connection: Connection, tenant_id: UUID, text_id: UUID, start: int, length: int
) -> TextWindowRow | None:
    """Return `length` code points from `start` on of a text.

    `None` means that this tenant has no such text.
    """
    values = {"tenant": tenant_id, "text_id": text_id, "start": start, "length": length}
    async with connection.cursor(row_factory=class_row(TextWindowRow)) as cursor:
        await cursor.execute(FIND_TEXT_WINDOW, values)
        return await cursor.fetchone()
