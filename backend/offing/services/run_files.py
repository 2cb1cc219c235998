"""List and read the files that the code of a run has written, and decide which of them a browser may display."""

from uuid import UUID

from offing.core.errors import NotFound
from offing.storage import run_files, run_summaries
from offing.storage.pool import Database
from offing.storage.run_files import RunFileRow, RunFileWithBody

IMAGE_MEDIA_TYPES = frozenset(("image/png", "image/svg+xml"))
"""Media types that the web UI may display as an image. An SVG that is opened directly could run scripts, so it
is a download.
"""

INLINE_MEDIA_TYPES = frozenset(("image/png",))
"""Media types that a browser may open directly."""


async def list_files(database: Database, tenant_id: UUID, run_id: UUID) -> list[RunFileRow]:
    """List the files of a run in the order in which they were written. Raises NotFound."""
    async with database.transaction(tenant_id) as connection:
        await run_summaries.get_run_status(connection, run_id)
        return await run_files.list_files_of_run(connection, tenant_id, run_id)


async def get_file(database: Database, tenant_id: UUID, run_id: UUID, sha256: str) -> RunFileWithBody:
    """Return the file with this hash in hex. Raises NotFound."""
    async with database.transaction(tenant_id) as connection:
        file = await run_files.find_file_by_hash(connection, tenant_id, run_id, bytes.fromhex(sha256))
    if file is None:
        raise NotFound("file", sha256)
    return file
