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


async def ingest_folder(database: Database, tenant_id: UUID, folder: Path, collection: str = "") -> IngestedFolder:
    """`collection` is its name. Empty means the path of the folder."""
    async with DocumentReaderPool(1) as readers:
        return await ingestion.ingest_folder(database, tenant_id, folder, collection=collection, readers=readers)


async def ingest_text(database: Database, tenant_id: UUID, folder: Path, text: str) -> None:
    """Ingest one document. The folder is created, and the collection has its name."""
    _write_document(folder, text)
    await ingest_folder(database, tenant_id, folder, folder.name)


def _write_document(folder: Path, text: str) -> None:
    folder.mkdir()
    (folder / "document.md").write_text(text)
