"""Documents ingested as the product does, by a reader that ends afterwards."""

from collections.abc import Sequence
from pathlib import Path
from uuid import UUID

from offing.library.readers import DocumentReaderPool
from offing.services import ingestion
from offing.services.ingestion import IngestedFile, IngestedFolder, Upload
from offing.storage.pool import Database


async def ingest_uploads(database: Database, tenant_id: UUID, uploads: Sequence[Upload]) -> tuple[IngestedFile, ...]:
    async with DocumentReaderPool(1) as readers:
        return await ingestion.ingest_uploads(database, tenant_id, uploads, readers=readers)


async def ingest_folder(database: Database, tenant_id: UUID, folder: Path) -> IngestedFolder:
    async with DocumentReaderPool(1) as readers:
        return await ingestion.ingest_folder(database, tenant_id, folder, readers=readers)
