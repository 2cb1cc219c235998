"""Organize the document library: list, rename and delete collections, and move documents between them.

The scope of a run names collections. A run that has not ended reads them until its end, so a collection that it is
limited to stays as it is until then. The scopes of ended runs follow a rename, because follow-ups begin with them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from offing.core.errors import Conflict, InvalidInput, NotFound
from offing.services.erasure import ErasureResult, erase_source
from offing.services.ingestion import normalize_collection_name
from offing.storage import collections as rows
from offing.storage.collections import CollectionRow
from offing.storage.erasure import lift_timeouts
from offing.storage.pool import Connection, Database
from offing.storage.web_pages import WEB_COLLECTION

MAX_MOVED_SOURCES = 200
"""Maximum number of documents that one request moves."""

MAX_ERASED_SOURCES = 20
"""Maximum number of documents that one request erases. Each one is a transaction of its own."""


@dataclass(frozen=True, slots=True)
class Collection:
    """A collection with its use."""

    row: CollectionRow
    active_run_count: int
    """Number of runs that have not ended and are limited to it. It can be neither renamed nor deleted meanwhile."""


@dataclass(frozen=True, slots=True)
class CollectionDeletion:
    """What a request of a deletion has done."""

    kept_count: int
    """Number of documents that are single files now."""
    erased: ErasureResult
    remaining_count: int
    """Number of documents that the next request erases. 0 means that the collection is deleted."""


async def list_collections(database: Database, tenant_id: UUID) -> list[Collection]:
    """Return the collections in the order of their names. Pages of the web are none of them."""
    async with database.transaction(tenant_id) as connection:
        listed = await rows.list_collections(connection, tenant_id)
        active = await rows.count_active_runs(connection, tenant_id)
    return [Collection(row, active.get(row.name, 0)) for row in listed if row.name != WEB_COLLECTION or row.count]


async def rename_collection(database: Database, tenant_id: UUID, name: str, new_name: str) -> Collection:
    """Give a collection another name, also in the scopes of ended runs.

    Raises NotFound, InvalidInput, and Conflict for a name that another collection has, for a folder of the server, and
    for a collection that an active run or a stored task is limited to.
    """
    new = _check_name("new_name", new_name)
    _check_organized("name", name)
    if not new:
        raise InvalidInput("new_name", "it is empty", "Write a name such as papers.")
    async with database.transaction(tenant_id) as connection:
        await lift_timeouts(connection)
        source_ids = await _lock_collection(connection, tenant_id, name)
        await _check_unused(connection, tenant_id, [name])
        await _check_no_task(connection, tenant_id, name)
        if name != new and await rows.has_sources(connection, tenant_id, new):
            raise Conflict(f"There is a collection {new!r} already.", "Choose another name, or move the documents.")
        if name != new:
            await rows.move_sources(connection, tenant_id, source_ids, new)
            await rows.rename_in_scopes(connection, tenant_id, name, new)
        row = next(row for row in await rows.list_collections(connection, tenant_id) if row.name == new)
    return Collection(row, 0)


async def delete_collection(database: Database, tenant_id: UUID, name: str, *, is_erasure: bool) -> CollectionDeletion:
    """Delete a collection. Its documents become single files, or are erased if `is_erasure`: at most 20 per call.

    Raises NotFound, InvalidInput, and Conflict for a collection that an active run is limited to or one of whose
    documents an active run has read. Documents that become single files must have other names than those that are.
    """
    if not name:
        raise InvalidInput("name", "single files are no collection", "Erase the documents one by one, or move them.")
    if not is_erasure:
        _check_organized("name", name)
        return await _release_sources(database, tenant_id, name)
    async with database.transaction(tenant_id) as connection:
        await _check_unused(connection, tenant_id, [name])
        sources = await rows.list_some_sources(connection, tenant_id, name, MAX_ERASED_SOURCES)
    if not sources:
        raise NotFound("collection", name)
    erased = await _erase_sources(database, tenant_id, sources)
    async with database.transaction(tenant_id) as connection:
        return CollectionDeletion(0, erased, await rows.count_sources(connection, tenant_id, name))


async def move_sources(database: Database, tenant_id: UUID, source_ids: Sequence[UUID], collection: str) -> int:
    """Move documents to a collection, which need not exist. Empty: they become single files. Return how many moved.

    Raises NotFound, InvalidInput, and Conflict if an active run is limited to a collection that would change or if two
    documents of the collection would have the same name.
    """
    target = _check_name("collection", collection)
    async with database.transaction(tenant_id) as connection:
        sources = await rows.lock_sources(connection, tenant_id, source_ids)
        if missing := set(source_ids) - {source.id for source in sources}:
            raise NotFound("source", str(min(missing)))
        for source in sources:
            if source.collection == WEB_COLLECTION:
                raise Conflict(f"{source.name!r} is a page of the web, which is in no collection.", "Leave it out.")
        await _check_unused(connection, tenant_id, sorted({target, *(source.collection for source in sources)}))
        return await rows.move_sources(connection, tenant_id, [source.id for source in sources], target)


async def _release_sources(database: Database, tenant_id: UUID, name: str) -> CollectionDeletion:
    async with database.transaction(tenant_id) as connection:
        await lift_timeouts(connection)
        source_ids = await _lock_collection(connection, tenant_id, name)
        await _check_unused(connection, tenant_id, [name])
        await _check_no_task(connection, tenant_id, name)
        kept_count = await rows.move_sources(connection, tenant_id, source_ids, "")
    return CollectionDeletion(kept_count, ErasureResult(0, 0, 0, 0), 0)


async def _erase_sources(database: Database, tenant_id: UUID, sources: Sequence[tuple[UUID, str]]) -> ErasureResult:
    """Erase sources one after the other. Raises Conflict for one that an active run has read; those before it stay
    erased.
    """
    results: list[ErasureResult] = []
    for source_id, title in sources:
        try:
            results.append(await erase_source(database, tenant_id, source_id))
        except Conflict as conflict:
            raise Conflict(f"{title!r} was not erased. {conflict.problem}", conflict.remedy) from conflict
        except NotFound:  # someone has erased it at the same moment
            continue
    return ErasureResult(
        sources=sum(one.sources for one in results),
        snapshots=sum(one.snapshots for one in results),
        passages=sum(one.passages for one in results),
        steps=sum(one.steps for one in results),
    )


async def _lock_collection(connection: Connection, tenant_id: UUID, name: str) -> list[UUID]:
    source_ids = await rows.lock_collection(connection, tenant_id, name)
    if not source_ids:
        raise NotFound("collection", name)
    return source_ids


def _check_name(field: str, text: str) -> str:
    """Return the normalized name of a collection for documents. Raises InvalidInput for `field`."""
    try:
        name = normalize_collection_name(text)
    except InvalidInput as error:
        raise InvalidInput(field, error.problem, error.remedy) from error
    if name == WEB_COLLECTION:
        raise InvalidInput(field, f"{name!r} is the name of the pages of the web", "Choose another name.")
    return name


def _check_organized(field: str, name: str) -> None:
    """Raise InvalidInput for what has no name that a person gave: single files, pages of the web, a folder."""
    if name in ("", WEB_COLLECTION):
        raise InvalidInput(field, "it is no collection that people name", "Move documents to a collection instead.")
    if "/" in name or "\\" in name:
        raise InvalidInput(
            field,
            "it is a folder of the server, and its path is its name",
            "Move its documents to a collection instead. Adding the folder again would create it again.",
        )


async def _check_unused(connection: Connection, tenant_id: UUID, names: Sequence[str]) -> None:
    if run_id := await rows.find_active_run(connection, tenant_id, names):
        raise Conflict(
            f"Run {run_id}, which has not ended, is limited to documents of this collection.",
            "Cancel it, or wait until it ends, then try again.",
        )


async def _check_no_task(connection: Connection, tenant_id: UUID, name: str) -> None:
    if dataset := await rows.find_dataset(connection, tenant_id, name):
        raise Conflict(
            f"Tasks of the dataset {dataset!r} are limited to this collection.",
            "Keep its name, so that the tasks find their documents.",
        )
