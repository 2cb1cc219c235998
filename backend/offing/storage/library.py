"""Snapshots, the texts extracted from them, and the sources under which people find them.

Bytes and texts are stored once per tenant.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from psycopg.rows import class_row

from offing.storage.pool import Connection

INSERT_SNAPSHOTS = """
    insert into snapshot (tenant_id, sha256, media_type, body)
    select %s, sha256, media_type, body
      from unnest(%b::bytea[], %b::text[], %b::bytea[]) as n(sha256, media_type, body)
    on conflict do nothing
"""

INSERT_TEXTS = """
    insert into extracted_text (id, tenant_id, snapshot_sha256, extractor, sha256, body, length_chars, title,
                                index_version, passage_count, first_passage, author, published, page_starts,
                                page_numbers)
    select id, %s, snapshot_sha256, extractor, sha256, body, length_chars, title, index_version, passage_count,
           first_passage, author, published, page_starts::integer[], page_numbers::integer[]
      from unnest(%b::uuid[], %b::bytea[], %b::text[], %b::bytea[], %b::text[], %b::integer[], %b::text[],
                  %b::integer[], %b::integer[], %b::integer[], %b::text[], %b::text[], %b::text[], %b::text[])
           as n(id, snapshot_sha256, extractor, sha256, body, length_chars, title, index_version, passage_count,
                first_passage, author, published, page_starts, page_numbers)
    on conflict (tenant_id, snapshot_sha256, extractor) do nothing returning id
"""
"""Returns no row for a text if another transaction extracted the same bytes in the meantime."""

SET_PUBLICATIONS = """
    update extracted_text a
       set author = n.author, published = n.published, page_starts = n.page_starts::integer[],
           page_numbers = n.page_numbers::integer[]
      from unnest(%b::uuid[], %b::text[], %b::text[], %b::text[], %b::text[])
           as n(id, author, published, page_starts, page_numbers)
     where a.tenant_id = %s and a.id = n.id
"""

LIST_STORED_TEXTS = """
    select distinct on (snapshot_sha256) snapshot_sha256, id, title, index_version,
           author is not null as has_publication
      from extracted_text where tenant_id = %s and snapshot_sha256 = any(%s)
     order by snapshot_sha256, created_at desc
"""
"""The newest text of each of these snapshots."""

LIST_CURRENT_SOURCES = """
    select s.name, s.id, a.id as text_id, a.snapshot_sha256, s.removed_at is not null as is_removed
      from source s join extracted_text a on a.id = s.text_id
     where s.tenant_id = %s and s.collection = %s and s.name = any(%s)
"""

LOCK_SOURCES = """
    select 1 from source where tenant_id = %s and collection = %s and name = any(%s) order by name for update
"""

LOCK_TEXTS = "select id from extracted_text where tenant_id = %s and snapshot_sha256 = any(%s) order by id for share"

INSERT_SOURCE_HISTORY = """
    insert into source_history (source_id, text_id, tenant_id)
    select s.id, s.text_id, s.tenant_id
      from unnest(%(names)s::text[], %(text_ids)s::uuid[]) as n(name, text_id)
      join source s on s.name = n.name and s.text_id <> n.text_id
     where s.tenant_id = %(tenant)s and s.collection = %(collection)s
     order by s.name for update of s
    on conflict do nothing
"""
"""A separate statement: the statement that replaces the row could not lock its previous version."""

UPSERT_SOURCES = """
    insert into source as s (id, tenant_id, collection, name, title, text_id, first_passage, passage_count)
    select n.id, %(tenant)s, %(collection)s, n.name, n.title, n.text_id, a.first_passage, a.passage_count
      from unnest(%(ids)s::uuid[], %(names)s::text[], %(titles)s::text[], %(text_ids)s::uuid[])
           as n(id, name, title, text_id)
      join extracted_text a on a.tenant_id = %(tenant)s and a.id = n.text_id
     order by n.name for share of a
    on conflict (tenant_id, collection, name) do update
       set title = excluded.title, text_id = excluded.text_id, removed_at = null, added_at = clock_timestamp(),
           first_passage = excluded.first_passage, passage_count = excluded.passage_count
    returning s.name, s.id
"""
"""The texts are locked, so that none gets other passage numbers in the meantime."""

MARK_REMOVED = """
    update source set removed_at = clock_timestamp()
     where tenant_id = %s and collection = %s and removed_at is null and not name = any(%s)
"""

FIND_OTHER_NAME = """
    select name from source
     where tenant_id = %s and collection = %s and removed_at is null and not name = any(%s) order by name limit 1
"""

LIST_PRESENT_COLLECTIONS = """
    select collection from unnest(%(names)s::text[]) as wanted(collection)
     where exists (select from source s
                    where s.tenant_id = %(tenant)s and s.collection = wanted.collection and s.removed_at is null)
"""

LIST_PRESENT_SOURCES = "select id from source where tenant_id = %s and id = any(%s) and removed_at is null"

MARK_PRESENT = "update source set removed_at = null where tenant_id = %s and id = any(%s)"

SOURCE_COLUMNS = """
    s.id, s.collection, s.name, s.title, n.media_type,
    coalesce(octet_length(n.body), octet_length(a.body)) as size_bytes,
    a.length_chars, a.id as text_id, n.sha256 as snapshot_sha256, s.added_at
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
    has_publication: bool
    """Whether its author, date and pages were looked for when it was stored or later."""


@dataclass(frozen=True, slots=True)
class CurrentSource:
    """The source that has a name in a collection at present."""

    name: str
    id: UUID
    text_id: UUID
    snapshot_sha256: bytes
    is_removed: bool


@dataclass(frozen=True, slots=True)
class TextPublication:
    """Who wrote a document and when, and where in its text its pages begin."""

    author: str
    """Empty means that the document names none."""
    published: str
    """YYYY, YYYY-MM or YYYY-MM-DD. Empty means that the document states no date."""
    page_starts: Sequence[tuple[int, int]]
    """Code points, ascending, each with the number of the page that begins there. Empty means that it has no pages."""


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
    index_version: int
    passage_count: int
    first_passage: int
    """Number of its first passage among all passages of the tenant."""
    publication: TextPublication


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


async def lock_sources(
    connection: Connection, tenant_id: UUID, collection: str, names: Sequence[str], snapshot_hashes: Sequence[bytes]
) -> set[UUID]:
    """Lock existing sources of these names and existing texts of these bytes. Return the ids of the texts."""
    await connection.execute(LOCK_SOURCES, (tenant_id, collection, list(names)))
    return {id async for (id,) in await connection.execute(LOCK_TEXTS, (tenant_id, list(snapshot_hashes)))}


async def insert_texts(connection: Connection, tenant_id: UUID, new: Sequence[NewExtractedText]) -> set[UUID]:
    """Store bytes and their texts, and return the ids of the texts that were stored.

    The others are already stored: as this extractor's text of these bytes.
    """
    contents = [None if n.snapshot_sha256 == n.text_sha256 else n.content for n in new]  # the text is these bytes
    hashes, media_types = [n.snapshot_sha256 for n in new], [n.media_type for n in new]
    await connection.execute(INSERT_SNAPSHOTS, (tenant_id, hashes, media_types, contents))
    values = (
        [n.id for n in new], hashes, [n.extractor for n in new], [n.text_sha256 for n in new], [n.text for n in new],
        [len(n.text) for n in new], [n.title for n in new], [n.index_version for n in new],
        [n.passage_count for n in new], [n.first_passage if n.passage_count else None for n in new],
        *_list_publication_columns([n.publication for n in new]),
    )  # fmt: skip
    cursor = await connection.execute(INSERT_TEXTS, (tenant_id, *values))
    return {id async for (id,) in cursor}


async def set_publications(
    connection: Connection, tenant_id: UUID, publications: Sequence[tuple[UUID, TextPublication]]
) -> None:
    """Store the author, date and pages of texts that are already stored, by the ids of the texts."""
    columns = _list_publication_columns([publication for _, publication in publications])
    await connection.execute(SET_PUBLICATIONS, ([id for id, _ in publications], *columns, tenant_id))


def _list_publication_columns(publications: Sequence[TextPublication]) -> tuple[list[str], ...]:
    """Return author, date, and the positions and numbers of the pages of each text, the latter as literals of arrays.

    An array of arrays would need rows of one length.
    """
    positions = [[at for at, _ in one.page_starts] for one in publications]
    numbers = [[number for _, number in one.page_starts] for one in publications]
    authors, dates = [one.author for one in publications], [one.published for one in publications]
    return authors, dates, list(map(_render_array, positions)), list(map(_render_array, numbers))


def _render_array(numbers: Sequence[int]) -> str:
    return f"{{{','.join(map(str, numbers))}}}"


@dataclass(frozen=True, slots=True)
class NewSource:
    """A name for a text. `id` is the source's id if the name is new."""

    id: UUID
    name: str
    title: str
    text_id: UUID


async def upsert_sources(
    connection: Connection, tenant_id: UUID, collection: str, sources: Sequence[NewSource]
) -> dict[str, UUID]:
    """Add sources with different names, or give the existing sources of these names other texts.

    Return their ids by name. The id of an existing source does not change.
    """
    values = {
        "tenant": tenant_id,
        "collection": collection,
        "ids": [s.id for s in sources],
        "names": [s.name for s in sources],
        "titles": [s.title for s in sources],
        "text_ids": [s.text_id for s in sources],
    }
    await connection.execute(INSERT_SOURCE_HISTORY, values)
    return {name: id async for name, id in await connection.execute(UPSERT_SOURCES, values)}


async def upsert_source(
    connection: Connection, tenant_id: UUID, *, source_id: UUID, collection: str, name: str, title: str, text_id: UUID
) -> UUID:
    """Add a source, or give the existing source of that name another text.

    Return its id, which does not change.
    """
    ids = await upsert_sources(connection, tenant_id, collection, [NewSource(source_id, name, title, text_id)])
    return ids[name]


async def find_other_name(connection: Connection, tenant_id: UUID, collection: str, names: Sequence[str]) -> str | None:
    """Return the name of a source of the collection that is none of `names`. `None` means that there is none."""
    row = await (await connection.execute(FIND_OTHER_NAME, (tenant_id, collection, list(names)))).fetchone()
    return None if row is None else row[0]


async def list_present_collections(connection: Connection, tenant_id: UUID, names: Sequence[str]) -> set[str]:
    """Return those of the collections that have a source which library search finds."""
    if not names:
        return set()
    rows = await connection.execute(LIST_PRESENT_COLLECTIONS, {"tenant": tenant_id, "names": list(names)})
    return {name for (name,) in await rows.fetchall()}


async def list_present_sources(connection: Connection, tenant_id: UUID, ids: Sequence[UUID]) -> set[UUID]:
    """Return those of the sources that library search finds."""
    if not ids:
        return set()
    return {id for (id,) in await (await connection.execute(LIST_PRESENT_SOURCES, (tenant_id, list(ids)))).fetchall()}


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
