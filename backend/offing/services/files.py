"""Files that the code of a run has written: listed, and handed out. The only home of which a browser may show."""

from uuid import UUID

from offing.core.errors import NotFound
from offing.storage import run_files, views
from offing.storage.pool import Database
from offing.storage.run_files import BodyRow, FileRow

PICTURES = frozenset(("image/png", "image/svg+xml"))
"""Kinds that a page may draw as a picture; a drawing that is opened by itself could run scripts, and is a download."""

OPENED = frozenset(("image/png",))
"""Kinds that may be opened by themselves."""


async def listed(database: Database, tenant: UUID, run: UUID) -> list[FileRow]:
    """In the order in which they were written. Raises NotFound."""
    async with database.transaction(tenant) as connection:
        await views.status(connection, run)
        return await run_files.listed(connection, tenant, run)


async def one(database: Database, tenant: UUID, run: UUID, sha256: str) -> BodyRow:
    """By its hash in hex. Raises NotFound."""
    async with database.transaction(tenant) as connection:
        found = await run_files.by_hash(connection, tenant, run, bytes.fromhex(sha256))
    if found is None:
        raise NotFound("file", sha256)
    return found
