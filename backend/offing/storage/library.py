"""Snapshots, the texts extracted from them, and the sources that people know them by.

Bytes and texts are stored once a tenant. Knows nothing of files on disk, extraction or ranking.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from psycopg.rows import class_row

from offing.storage.pool import Connection

ADD_SNAPSHOT = """
    insert into snapshot (tenant_id, sha256, media_type, body) values (%s, %s, %s, %s) on conflict do nothing
"""

ADD_ARTEFACT = """
    insert into artefact (id, tenant_id, snapshot, extractor, sha256, body, length, title)
    values (%s, %s, %s, %s, %s, %s, %s, %s)
    on conflict (tenant_id, snapshot, extractor) do nothing returning id
"""
"""No row comes back when another transaction extracted the same bytes in the meantime."""

KNOWN_TEXTS = """
    select distinct on (snapshot) snapshot, id, title, digest
      from artefact where tenant_id = %s and snapshot = any(%s)
     order by snapshot, created_at desc
"""
"""The newest text of each of these bytes."""

SOURCES_OF = """
    select s.name, s.id, a.id as artefact, a.snapshot, s.gone_at is not null as gone
      from source s join artefact a on a.id = s.artefact_id
     where s.tenant_id = %s and s.collection = %s and s.name = any(%s)
"""

KEEP_PAST = """
    insert into source_past (source_id, artefact_id, tenant_id)
    select id, artefact_id, tenant_id from source
     where tenant_id = %(tenant)s and collection = %(collection)s and name = %(name)s and artefact_id <> %(artefact)s
       for update
    on conflict do nothing
"""
"""A statement of its own: within the one that replaces, the row as it was could no longer be locked."""

PUT_SOURCE = """
    insert into source as s (id, tenant_id, collection, name, title, artefact_id)
    values (%(id)s, %(tenant)s, %(collection)s, %(name)s, %(title)s, %(artefact)s)
    on conflict (tenant_id, collection, name) do update
       set title = excluded.title, artefact_id = excluded.artefact_id, gone_at = null, added_at = clock_timestamp()
    returning s.id
"""

MARK_GONE = """
    update source set gone_at = clock_timestamp()
     where tenant_id = %s and collection = %s and gone_at is null and not name = any(%s)
"""

MARK_PRESENT = "update source set gone_at = null where tenant_id = %s and id = any(%s)"

SOURCE_COLUMNS = """
    s.id, s.collection, s.name, s.title, n.media_type, octet_length(n.body) as size, a.length, a.id as artefact,
    n.sha256 as snapshot, s.added_at
      from source s join artefact a on a.id = s.artefact_id
      join snapshot n on n.tenant_id = a.tenant_id and n.sha256 = a.snapshot
"""

SOURCE = f"select {SOURCE_COLUMNS} where s.tenant_id = %s and s.id = %s"

LIST_SOURCES = f"""
    select {SOURCE_COLUMNS}
     where s.tenant_id = %(tenant)s
       and (%(collection)s::text is null or s.collection = %(collection)s)
       and (%(text)s::text is null or strpos(lower(s.title || chr(10) || s.name), lower(%(text)s)) > 0)
       and (%(before_at)s::timestamptz is null or (s.added_at, s.id) < (%(before_at)s, %(before_id)s))
     order by s.added_at desc, s.id desc limit %(limit)s
"""

COUNT_SOURCES = """
    select count(*) from source s
     where s.tenant_id = %(tenant)s
       and (%(collection)s::text is null or s.collection = %(collection)s)
       and (%(text)s::text is null or strpos(lower(s.title || chr(10) || s.name), lower(%(text)s)) > 0)
"""


@dataclass(frozen=True, slots=True)
class KnownText:
    """A text that is stored already."""

    snapshot: bytes
    id: UUID
    title: str
    digest: int
    """Version of its passages. 0: none yet."""


@dataclass(frozen=True, slots=True)
class HeldSource:
    """What a name of a collection stands for at present."""

    name: str
    id: UUID
    artefact: UUID
    snapshot: bytes
    gone: bool


@dataclass(frozen=True, slots=True)
class Artefact:
    """A text to be stored, with the bytes it was extracted from."""

    id: UUID
    snapshot: bytes
    """SHA-256 of the bytes."""
    media_type: str
    raw: bytes
    extractor: str
    sha256: bytes
    """Of the text in UTF-8."""
    text: str
    title: str


@dataclass(frozen=True, slots=True)
class SourceRow:
    """A document as a list shows it."""

    id: UUID
    collection: str
    name: str
    title: str
    media_type: str
    size: int
    """Bytes of the file."""
    length: int
    """Code points of its text."""
    artefact: UUID
    snapshot: bytes
    """SHA-256 of the bytes."""
    added_at: datetime


async def known_texts(connection: Connection, tenant: UUID, snapshots: Sequence[bytes]) -> dict[bytes, KnownText]:
    """The newest stored text of each of these bytes, by their SHA-256; bytes without one are absent."""
    async with connection.cursor(row_factory=class_row(KnownText)) as cursor:
        await cursor.execute(KNOWN_TEXTS, (tenant, list(snapshots)))
        return {row.snapshot: row async for row in cursor}


async def held_sources(connection: Connection, tenant: UUID, collection: str, names: Sequence[str]) -> list[HeldSource]:
    async with connection.cursor(row_factory=class_row(HeldSource)) as cursor:
        await cursor.execute(SOURCES_OF, (tenant, collection, list(names)))
        return await cursor.fetchall()


async def add_artefact(connection: Connection, tenant: UUID, new: Artefact) -> UUID | None:
    """Store bytes and text; the text's id. None: the same extractor's text of these bytes is there already."""
    await connection.execute(ADD_SNAPSHOT, (tenant, new.snapshot, new.media_type, new.raw))
    row = await (
        await connection.execute(
            ADD_ARTEFACT,
            (new.id, tenant, new.snapshot, new.extractor, new.sha256, new.text, len(new.text), new.title),
        )
    ).fetchone()
    return row[0] if row else None


async def put_source(
    connection: Connection, tenant: UUID, *, id: UUID, collection: str, name: str, title: str, artefact: UUID
) -> UUID:
    """Add a source, or let an existing one of that name hold another text; its id, which stays the same."""
    values = {"id": id, "tenant": tenant, "collection": collection, "name": name, "title": title, "artefact": artefact}
    await connection.execute(KEEP_PAST, values)
    row = await (await connection.execute(PUT_SOURCE, values)).fetchone()
    assert row is not None
    return row[0]


async def mark_gone(connection: Connection, tenant: UUID, collection: str, present: Sequence[str]) -> int:
    """Take all sources but those present out of search; how many were taken out now."""
    return (await connection.execute(MARK_GONE, (tenant, collection, list(present)))).rowcount


async def mark_present(connection: Connection, tenant: UUID, sources: Sequence[UUID]) -> None:
    await connection.execute(MARK_PRESENT, (tenant, list(sources)))


async def source(connection: Connection, tenant: UUID, id: UUID) -> SourceRow | None:
    async with connection.cursor(row_factory=class_row(SourceRow)) as cursor:
        await cursor.execute(SOURCE, (tenant, id))
        return await cursor.fetchone()


async def list_sources(
    connection: Connection,
    tenant: UUID,
    *,
    collection: str | None,
    text: str | None,
    before: tuple[datetime, UUID] | None,
    limit: int,
) -> tuple[list[SourceRow], int]:
    """Sources, latest first, and how many there are in all. `text` None: any; else part of a title or name."""
    at, id = before or (None, None)
    values = {"tenant": tenant, "collection": collection, "text": text, "before_at": at, "before_id": id}
    async with connection.cursor(row_factory=class_row(SourceRow)) as cursor:
        await cursor.execute(LIST_SOURCES, {**values, "limit": limit})
        rows = await cursor.fetchall()
    counted = await (await connection.execute(COUNT_SOURCES, values)).fetchone()
    return rows, counted[0] if counted else 0
