"""What tools of MCP servers answered: sources of a collection of their own, which no search of the library finds.

The only home of that collection's name. Citations reach an answer by its text, as any other; knows nothing of servers.
"""

from uuid import UUID

from psycopg.rows import class_row

from offing.storage import library
from offing.storage.pages import UNLIST
from offing.storage.passages import WindowRow
from offing.storage.pool import Connection

COLLECTION = "mcp"

WINDOW = """
    select s.id as source, s.title, s.name, a.id as artefact, a.length, a.snapshot,
           substring(a.body from %(start)s + 1 for %(length)s) as text
      from source s join artefact a on a.id = s.artefact_id
     where s.tenant_id = %(tenant)s and s.collection = %(collection)s and s.name = %(name)s
"""


async def put(connection: Connection, tenant: UUID, *, id: UUID, name: str, title: str, artefact: UUID) -> None:
    """Let a call's name stand for the text that it gave."""
    source = await library.put_source(
        connection, tenant, id=id, collection=COLLECTION, name=name, title=title, artefact=artefact
    )
    await connection.execute(UNLIST, (tenant, source))


async def window(connection: Connection, tenant: UUID, name: str, start: int, length: int) -> WindowRow | None:
    """`length` code points of an answer from `start` on. None: there is none of this name."""
    values = {"tenant": tenant, "collection": COLLECTION, "name": name, "start": start, "length": length}
    async with connection.cursor(row_factory=class_row(WindowRow)) as cursor:
        await cursor.execute(WINDOW, values)
        return await cursor.fetchone()
