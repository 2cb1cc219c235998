"""Snapshots, the texts extracted from them, and the sources under which people find them.

Bytes and texts are stored once per tenant.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from psycopg.rows import class_row

from offing.storage.pool import Connection

LIST_COLLECTIONS = "select collection, count(*) from source where removed_at is null group by 1 order by 1"

INSERT_SNAPSHOT = """
    insert into snapshot (tenant_id, sha256, media_type, body) values (%s, %s, %s, %s) on conflict do nothing
"""

INSERT_TEXT = """
    insert into extracted_text (id, tenant_id, snapshot_sha256, extractor, sha256, body, length_chars, title)
    values (%s, %s, %s, %s, %s, %s, %s, %s)
    on conflict (tenant_id, snapshot_sha256, extractor) do nothing returning id
"""
"""Returns no row if another transaction extracted the same bytes in the meantime."""

LIST_STORED_TEXTS = """
    select distinct on (snapshot_sha256) snapshot_sha256, id, title, index_version
      from extracted_text where tenant_id = %s and snapshot_sha256 = any(%s)
     order by snapshot_sha256, created_at desc
"""
"""The newest text of each of these snapshots."""

LIST_CURRENT_SOURCES = """
    select s.name, s.id, a.id as text_id, a.snapshot_sha256, s.removed_at is not null as is_removed
      from source s join extracted_text a on a.id = s.text_id
     where s.tenant_id = %s and s.collection = %s and s.name = any(%s)
"""

INSERT_SOURCE_HISTORY = """
    insert into source_history (source_id, text_id, tenant_id)
    select id, text_id, tenant_id from source
     where tenant_id = %(tenant)s and collection = %(collection)s and name = %(name)s and text_id <> %(text_id)s
       for update
    on conflict do nothing
"""
"""A separate statement: the statement that replaces the row could not lock its previous version."""

UPSERT_SOURCE = """
    insert into source as s (id, tenant_id, collection, name, title, text_id)
    values (%(id)s, %(tenant)s, %(collection)s, %(name)s, %(title)s, %(text_id)s)
    on conflict (tenant_id, collection, name) do update
       set title = excluded.title, text_id = excluded.text_id, removed_at = null, added_at = clock_timestamp()
    returning s.id
"""

MARK_REMOVED = """
    update source set removed_at = clock_timestamp()
     where tenant_id = %s and collection = %s and removed_at is null and not name = any(%s)
"""

FIND_OTHER_NAME = """
    select name from source
     where tenant_id = %s and collection = %s and removed_at is null and not name = any(%s) order by name limit 1
"""

MARK_PRESENT = "update source set removed_at = null where tenant_id = %s and id = any(%s)"

SOURCE_COLUMNS = """
    s.id, s.collection, s.name, s.title, n.media_type, octet_length(n.body) as size_bytes, a.length_chars,
    a.id as text_id, n.sha256 as snapshot_sha256, s.added_at
      from source s join extracted_text a on a.id = s.text_id
      join snapshot n on n.tenant_id = a.tenant_id and n.sha256 = a.snapshot_sha256
"""

FIND_SOURCE = f"select {SOURCE_COLUMNS} where s.tenant_id = %s and s.id = %s"

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
class StoredText:
    """A text that is already stored."""

    snapshot_sha256: bytes
    id: UUID
    title: str
    index_version: int
    """Version of its document index. 0 means that it has none yet."""


@dataclass(frozen=True, slots=True)
class CurrentSource:
    """The source that has a name in a collection at present."""

    name: str
    id: UUID
    text_id: UUID
    snapshot_sha256: bytes
    is_removed: bool


@dataclass(frozen=True, slots=True)
class NewExtractedText:
    """A new text with the bytes from which it was extracted."""

    id: UUID
    snapshot_sha256: bytes
    """SHA-256 of the bytes."""
    media_type: str
    content: bytes
    extractor: str
    text_sha256: bytes
    """SHA-256 of the text in UTF-8."""
    text: str
    title: str


@dataclass(frozen=True, slots=True)
class SourceRow:
    """A source as a list shows it."""

    id: UUID
    collection: str
    name: str
    title: str
    media_type: str
    size_bytes: int
    """Size of the file in bytes."""
    length_chars: int
    """Length of the text in code points."""
    text_id: UUID
    snapshot_sha256: bytes
    """SHA-256 of the bytes."""
    added_at: datetime


async def list_stored_texts(
    connection: Connection, tenant_id: UUID, snapshot_hashes: Sequence[bytes]
) -> dict[bytes, StoredText]:
    """Return the newest stored text of each snapshot, by the SHA-256 of its bytes.

    Snapshots without a text are left out.
    """
    async with connection.cursor(row_factory=class_row(StoredText)) as cursor:
        await cursor.execute(LIST_STORED_TEXTS, (tenant_id, list(snapshot_hashes)))
        return {row.snapshot_sha256: row async for row in cursor}


async def list_current_sources(
    connection: Connection, tenant_id: UUID, collection: str, names: Sequence[str]
) -> list[CurrentSource]:
    async with connection.cursor(row_factory=class_row(CurrentSource)) as cursor:
        await cursor.execute(LIST_CURRENT_SOURCES, (tenant_id, collection, list(names)))
        return await cursor.fetchall()


async def insert_text(connection: Connection, tenant_id: UUID, new: NewExtractedText) -> UUID | None:
    """Store bytes and their text, and return the text's id.

    `None` means that this extractor's text of these bytes is already stored.
    """
    await connection.execute(INSERT_SNAPSHOT, (tenant_id, new.snapshot_sha256, new.media_type, new.content))
    row = await (
        await connection.execute(
            INSERT_TEXT,
            (
                new.id,
                tenant_id,
                new.snapshot_sha256,
                new.extractor,
                new.text_sha256,
                new.text,
                len(new.text),
                new.title,
            ),
        )
    ).fetchone()
    return row[0] if row else None


async def upsert_source(
    connection: Connection, tenant_id: UUID, *, source_id: UUID, collection: str, name: str, title: str, text_id: UUID
) -> UUID:
    """Add a source, or give the existing source of that name another text.

    Return its id, which does not change.
    """
    values = {
        "id": source_id,
        "tenant": tenant_id,
        "collection": collection,
        "name": name,
        "title": title,
        "text_id": text_id,
    }
    await connection.execute(INSERT_SOURCE_HISTORY, values)
    row = await (await connection.execute(UPSERT_SOURCE, values)).fetchone()
    assert row is not None
    return row[0]


async def find_other_name(connection: Connection, tenant_id: UUID, collection: str, names: Sequence[str]) -> str | None:
    """Return the name of a source of the collection that is none of `names`. `None` means that there is none."""
    row = await (await connection.execute(FIND_OTHER_NAME, (tenant_id, collection, list(names)))).fetchone()
    return None if row is None else row[0]


async def mark_removed(connection: Connection, tenant_id: UUID, collection: str, present_names: Sequence[str]) -> int:
    """Remove all sources of a collection from search except those in `present_names`.

    Return the number of newly removed sources.
    """
    return (await connection.execute(MARK_REMOVED, (tenant_id, collection, list(present_names)))).rowcount


async def mark_present(connection: Connection, tenant_id: UUID, source_ids: Sequence[UUID]) -> None:
    await connection.execute(MARK_PRESENT, (tenant_id, list(source_ids)))


async def find_source(connection: Connection, tenant_id: UUID, source_id: UUID) -> SourceRow | None:
    async with connection.cursor(row_factory=class_row(SourceRow)) as cursor:
        await cursor.execute(FIND_SOURCE, (tenant_id, source_id))
        return await cursor.fetchone()


async def list_sources(
    connection: Connection,
    tenant_id: UUID,
    *,
    collection: str | None,
    text: str | None,
    before: tuple[datetime, UUID] | None,
    limit: int,
) -> tuple[list[SourceRow], int]:
    """Return sources, latest first, and their total number.

    `text` is a part of the title or name; `None` means any source.
    """
    at, id = before or (None, None)
    values = {"tenant": tenant_id, "collection": collection, "text": text, "before_at": at, "before_id": id}
    async with connection.cursor(row_factory=class_row(SourceRow)) as cursor:
        await cursor.execute(LIST_SOURCES, {**values, "limit": limit})
        rows = await cursor.fetchall()
    counted = await (await connection.execute(COUNT_SOURCES, values)).fetchone()
    return rows, counted[0] if counted else 0


async def list_collections(connection: Connection) -> list[tuple[str, int]]:
    """Return the collections with the number of their current sources."""
    return [(name, count) for name, count in await (await connection.execute(LIST_COLLECTIONS)).fetchall()]
