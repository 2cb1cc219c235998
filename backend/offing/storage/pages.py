"""Pages of the web as they were fetched: sources of a collection of their own, which no search of the library finds.

The only home of that collection's name. Citations reach a page by its text, as any other; knows nothing of fetching.
"""

from datetime import timedelta
from uuid import UUID

from psycopg.rows import class_row

from offing.storage import library
from offing.storage.passages import WindowRow
from offing.storage.pool import Connection

WEB = "web"

UNLIST = "update source set gone_at = clock_timestamp() where tenant_id = %s and id = %s"

WINDOW = """
    select s.id as source, s.title, s.name, a.id as artefact, a.length, a.snapshot,
           substring(a.body from %(start)s + 1 for %(length)s) as text
      from source s join artefact a on a.id = s.artefact_id
     where s.tenant_id = %(tenant)s and s.collection = %(web)s and s.name = %(url)s
       and s.added_at > clock_timestamp() - %(fresh)s
"""


async def put(connection: Connection, tenant: UUID, *, id: UUID, url: str, title: str, artefact: UUID) -> None:
    """Let an address stand for a text; what it stood for before is kept for those who cite it."""
    source = await library.put_source(
        connection, tenant, id=id, collection=WEB, name=url, title=title, artefact=artefact
    )
    await connection.execute(UNLIST, (tenant, source))


async def window(
    connection: Connection, tenant: UUID, url: str, start: int, length: int, fresh: timedelta
) -> WindowRow | None:
    """`length` code points of a page from `start` on. None: it was not fetched, or longer ago than `fresh`."""
    values = {"tenant": tenant, "web": WEB, "url": url, "start": start, "length": length, "fresh": fresh}
    async with connection.cursor(row_factory=class_row(WindowRow)) as cursor:
        await cursor.execute(WINDOW, values)
        return await cursor.fetchone()
