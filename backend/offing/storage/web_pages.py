"""Fetched web pages, stored as sources.

They have a separate collection that library search does not include. Citations refer to the
text of a page, as to any other text.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from psycopg.rows import class_row

from offing.storage import library
from offing.storage.passages import TextWindowRow
from offing.storage.pool import Connection

WEB_COLLECTION = "web"

HIDE_FROM_SEARCH = "update source set removed_at = clock_timestamp() where tenant_id = %s and id = %s"

FIND_WINDOW = """
    select s.id as source_id, s.title, s.name, a.id as text_id, a.length_chars as text_length, a.snapshot_sha256,
           coalesce(a.published, '') as published,
           substring(a.body from %(start)s + 1 for %(length)s) as text
      from source s join extracted_text a on a.id = s.text_id
     where s.tenant_id = %(tenant)s and s.collection = %(web)s and s.name = %(url)s
       and s.added_at > clock_timestamp() - %(fresh)s
"""

FIND_RECORDED_TEXTS = "select name, text_id from source where tenant_id = %s and collection = %s and name = any(%s)"

FIND_RECORDED_WINDOW = """
    select s.id as source_id, s.title, s.name, a.id as text_id, a.length_chars as text_length, a.snapshot_sha256,
           coalesce(a.published, '') as published,
           substring(a.body from %(start)s + 1 for %(length)s) as text
      from source s join extracted_text a on a.tenant_id = s.tenant_id and a.id = %(text)s
     where s.tenant_id = %(tenant)s and s.collection = %(web)s and s.name = %(url)s
"""

LIST_RECORDED_PAGES = """
    select s.name as url, s.title, a.body as text
      from unnest(%(urls)s::text[], %(texts)s::uuid[]) as wanted(url, text_id)
      join source s on s.tenant_id = %(tenant)s and s.collection = %(web)s and s.name = wanted.url
      join extracted_text a on a.tenant_id = s.tenant_id and a.id = wanted.text_id
"""


@dataclass(frozen=True, slots=True)
class RecordedPageRow:
    """A recorded page with its text."""

    url: str
    title: str
    text: str


async def find_recorded_texts(connection: Connection, tenant_id: UUID, urls: Sequence[str]) -> dict[str, UUID]:
    """Return the id of the latest text of each page that a run of the tenant has read, of any age, by URL."""
    if not urls:
        return {}
    rows = await connection.execute(FIND_RECORDED_TEXTS, (tenant_id, WEB_COLLECTION, list(urls)))
    return dict(await rows.fetchall())


async def find_recorded_window(
    connection: Connection, tenant_id: UUID, url: str, text_id: UUID, start: int, length: int
) -> TextWindowRow | None:
    """Return `length` code points from `start` on of one text of a page. `None` means that it is not kept any more."""
    values = {
        "tenant": tenant_id,
        "web": WEB_COLLECTION,
        "url": url,
        "text": text_id,
        "start": start,
        "length": length,
    }
    async with connection.cursor(row_factory=class_row(TextWindowRow)) as cursor:
        await cursor.execute(FIND_RECORDED_WINDOW, values)
        return await cursor.fetchone()


async def list_recorded_pages(
    connection: Connection, tenant_id: UUID, texts: Mapping[str, UUID]
) -> list[RecordedPageRow]:
    """Return the pages with these texts, by URL."""
    values = {"tenant": tenant_id, "web": WEB_COLLECTION, "urls": list(texts), "texts": list(texts.values())}
    async with connection.cursor(row_factory=class_row(RecordedPageRow)) as cursor:
        await cursor.execute(LIST_RECORDED_PAGES, values)
        return await cursor.fetchall()


async def upsert_page(
    connection: Connection, tenant_id: UUID, *, source_id: UUID, url: str, title: str, text_id: UUID
) -> None:
    """Store a text as the web page at a URL. The previous text is kept for existing citations."""
    source = await library.upsert_source(
        connection, tenant_id, source_id=source_id, collection=WEB_COLLECTION, name=url, title=title, text_id=text_id
    )
    await connection.execute(HIDE_FROM_SEARCH, (tenant_id, source))


async def find_window(
    connection: Connection, tenant_id: UUID, url: str, start: int, length: int, max_age: timedelta
) -> TextWindowRow | None:
    """Return `length` code points of a page from `start` on.

    `None` means that the page was not fetched within `max_age`.
    """
    values = {
        "tenant": tenant_id,
        "web": WEB_COLLECTION,
        "url": url,
        "start": start,
        "length": length,
        "fresh": max_age,
    }
    async with connection.cursor(row_factory=class_row(TextWindowRow)) as cursor:
        await cursor.execute(FIND_WINDOW, values)
        return await cursor.fetchone()
