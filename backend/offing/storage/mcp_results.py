"""Results of MCP tools, stored as sources.

They have a separate collection that library search does not include. Citations refer to the
text of a result, as to any other text.
"""

from uuid import UUID

from psycopg.rows import class_row

from offing.storage import library
from offing.storage.passages import TextWindowRow
from offing.storage.pool import Connection
from offing.storage.web_pages import HIDE_FROM_SEARCH

MCP_COLLECTION = "mcp"

FIND_WINDOW = """
    select s.id as source_id, s.title, s.name, a.id as text_id, a.length_chars as text_length, a.snapshot_sha256,
           substring(a.body from %(start)s + 1 for %(length)s) as text
      from source s join extracted_text a on a.id = s.text_id
     where s.tenant_id = %(tenant)s and s.collection = %(collection)s and s.name = %(name)s
"""


async def upsert_result(
    connection: Connection, tenant_id: UUID, *, source_id: UUID, call_name: str, title: str, text_id: UUID
) -> None:
    """Store a text as the result of a call."""
    source = await library.upsert_source(
        connection,
        tenant_id,
        source_id=source_id,
        collection=MCP_COLLECTION,
        name=call_name,
        title=title,
        text_id=text_id,
    )
    await connection.execute(HIDE_FROM_SEARCH, (tenant_id, source))


async def find_window(
    connection: Connection, tenant_id: UUID, call_name: str, start: int, length: int
) -> TextWindowRow | None:
    """Return `length` code points of a result from `start` on.

    `None` means that there is no result of this name.
    """
    values = {"tenant": tenant_id, "collection": MCP_COLLECTION, "name": call_name, "start": start, "length": length}
    async with connection.cursor(row_factory=class_row(TextWindowRow)) as cursor:
        await cursor.execute(FIND_WINDOW, values)
        return await cursor.fetchone()
