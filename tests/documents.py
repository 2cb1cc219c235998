"""Documents taken in as the product does, by a reader that ends afterwards."""

from collections.abc import Sequence
from pathlib import Path
from uuid import UUID

from offing.library.readers import Readers
from offing.services import library
from offing.services.library import FolderIngested, Ingested, Upload
from offing.storage.pool import Database


async def ingest_uploads(database: Database, tenant: UUID, uploads: Sequence[Upload]) -> tuple[Ingested, ...]:
    async with Readers(1) as readers:
        return await library.ingest_uploads(database, tenant, uploads, readers=readers)


async def ingest_folder(database: Database, tenant: UUID, folder: Path) -> FolderIngested:
    async with Readers(1) as readers:
        return await library.ingest_folder(database, tenant, folder, readers=readers)
