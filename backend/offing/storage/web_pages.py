"""Fetched web pages, stored as sources.

They have a separate collection that library search does not include. Citations refer to the
text of a page, as to any other text.
"""

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
