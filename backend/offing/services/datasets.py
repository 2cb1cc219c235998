"""Store datasets: their documents in a collection of the library, and their tasks."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from offing.core.errors import Conflict, InvalidInput, Unavailable
from offing.datasets.dataset import Dataset
from offing.library.folder import MAX_FILES, list_documents
from offing.library.readers import DocumentReaderPool
from offing.mcp.server_registry import McpServerRegistry
from offing.services.ingestion import IngestedFolder, ProgressCallback, ignore_progress, ingest_folder
from offing.services.tasks import StoredTasks, store_tasks
from offing.storage import library
from offing.storage.pool import Database


@dataclass(frozen=True, slots=True)
class StoredDataset:
    tasks: StoredTasks
    documents: IngestedFolder | None
    """The outcome of the documents. `None` if the dataset has none."""


async def store_dataset(
    database: Database,
    tenant_id: UUID,
    dataset: Dataset,
    *,
    name: str = "",
    readers: DocumentReaderPool,
    on_progress: ProgressCallback = ignore_progress,
    servers: McpServerRegistry | None = None,
) -> StoredDataset:
    """Ingest the documents of a dataset and store its tasks. It may be repeated: nothing is stored twice.

    `name` is the dataset of the stored tasks; empty means the name of `dataset`. Raises InvalidInput for a dataset
    without tasks or with too many documents, Conflict if its collection contains other documents, and Unavailable
    if a document was not stored.
    """
    documents = None
    if dataset.documents is not None:
        names = await asyncio.to_thread(_list_documents, dataset.documents)
        await _check_collection(database, tenant_id, dataset.name, names)
        documents = await ingest_folder(
            database, tenant_id, dataset.documents, on_progress, collection=dataset.name, readers=readers
        )
        _check_stored(documents)
    stored = await store_tasks(database, tenant_id, name or dataset.name, dataset.tasks, servers)
    return StoredDataset(stored, documents)


def _list_documents(folder: Path) -> Sequence[str]:
    listing = list_documents(folder)
    if listing.truncated:
        raise InvalidInput(str(folder), f"the folder has more than {MAX_FILES:,} files", "Import fewer questions.")
    return listing.names


async def _check_collection(database: Database, tenant_id: UUID, collection: str, names: Sequence[str]) -> None:
    """Check that the collection has no other documents, which would change what the tasks measure."""
    async with database.transaction(tenant_id) as connection:
        other = await library.find_other_name(connection, tenant_id, collection, names)
    if other is not None:
        problem = f"The collection {collection!r} contains {other!r}, which is not a document of the dataset."
        raise Conflict(problem, "Change the name in dataset.toml, or delete the other documents of the collection.")


def _check_stored(documents: IngestedFolder) -> None:
    failed = [file for file in documents.files if file.outcome == "failed"]
    if failed:
        raise Unavailable(f"{len(failed)} documents were not stored, such as {failed[0].name}: {failed[0].problem}")
