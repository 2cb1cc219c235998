"""Collections of the document library: what they contain, and which runs are limited to them.

A collection exists as long as a source names it. The search index has no collections, so nothing is indexed again.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from psycopg.errors import UniqueViolation
from psycopg.rows import class_row

from offing.core.errors import Conflict
from offing.storage.pool import Connection

LIST_COLLECTIONS = """
    select collection as name, count(*) filter (where removed_at is null) as count,
           count(*) filter (where removed_at is not null) as removed_count, max(added_at) as latest_added_at
      from source where tenant_id = %s group by 1 order by 1
"""

COUNT_ACTIVE_RUNS = """
    select c.name, count(*) from run cross join jsonb_array_elements_text(scope->'collections') as c(name)
     where tenant_id = %s and status in ('queued', 'running', 'waiting', 'paused') group by 1
"""

FIND_ACTIVE_RUN = """
    select id from run
     where tenant_id = %s and status in ('queued', 'running', 'waiting', 'paused')
       and scope->'collections' ?| %s::text[] order by created_at limit 1
"""

FIND_DATASET = """
    select dataset from task where tenant_id = %s and scope->'collections' ? %s limit 1
"""

HAS_SOURCES = "select exists (select from source where tenant_id = %s and collection = %s)"

LOCK_COLLECTION = "select id from source where tenant_id = %s and collection = %s order by name for update"

LOCK_SOURCES = """
    select id, collection, name from source where tenant_id = %s and id = any(%s) order by collection, name for update
"""

FIND_TAKEN_NAME = """
    select name from source where tenant_id = %s and collection = %s and name = any(%s) and not id = any(%s)
     order by name limit 1
"""

LIST_NAMES = "select name from source where id = any(%s)"

MOVE_SOURCES = "update source set collection = %s where tenant_id = %s and id = any(%s) and collection <> %s"

RENAME_IN_SCOPES = """
    update run set scope = jsonb_set(scope, '{collections}', (
             select jsonb_agg(case when c.name = %(old)s then %(new)s else c.name end order by c.position)
               from jsonb_array_elements_text(scope->'collections') with ordinality as c(name, position)))
     where tenant_id = %(tenant)s and ended_at is not null and scope->'collections' ? %(old)s
"""
"""A follow-up and a fork begin with the scope of an earlier run."""

LIST_SOME_SOURCES = "select id, title from source where tenant_id = %s and collection = %s order by name limit %s"

COUNT_SOURCES = "select count(*) from source where tenant_id = %s and collection = %s"


@dataclass(frozen=True, slots=True)
class CollectionRow:
    """A collection as a list shows it."""

    name: str
    """Empty means the single files."""
    count: int
    """Number of its documents that can be searched."""
    removed_count: int
    """Number of its documents that were missing when their folder was read again."""
    latest_added_at: datetime


@dataclass(frozen=True, slots=True)
class SourceName:
    """Where people find a source."""

    id: UUID
    collection: str
    name: str


async def list_collections(connection: Connection, tenant_id: UUID) -> list[CollectionRow]:
    """Return the collections in the order of their names."""
    async with connection.cursor(row_factory=class_row(CollectionRow)) as cursor:
        await cursor.execute(LIST_COLLECTIONS, (tenant_id,))
        return await cursor.fetchall()


async def count_active_runs(connection: Connection, tenant_id: UUID) -> dict[str, int]:
    """Return how many runs that have not ended are limited to each collection. Collections without any are left out."""
    return dict(await (await connection.execute(COUNT_ACTIVE_RUNS, (tenant_id,))).fetchall())


async def find_active_run(connection: Connection, tenant_id: UUID, collections: Sequence[str]) -> UUID | None:
    """Return a run that has not ended and is limited to one of the collections. `None` means that there is none."""
    row = await (await connection.execute(FIND_ACTIVE_RUN, (tenant_id, list(collections)))).fetchone()
    return None if row is None else row[0]


async def find_dataset(connection: Connection, tenant_id: UUID, collection: str) -> str | None:
    """Return the dataset of a stored task that is limited to the collection. `None` means that there is none."""
    row = await (await connection.execute(FIND_DATASET, (tenant_id, collection))).fetchone()
    return None if row is None else row[0]


async def has_sources(connection: Connection, tenant_id: UUID, collection: str) -> bool:
    row = await (await connection.execute(HAS_SOURCES, (tenant_id, collection))).fetchone()
    return row is not None and row[0]


async def lock_collection(connection: Connection, tenant_id: UUID, collection: str) -> list[UUID]:
    """Lock the sources of a collection until the transaction ends, and return their ids."""
    return [id for (id,) in await (await connection.execute(LOCK_COLLECTION, (tenant_id, collection))).fetchall()]


async def lock_sources(connection: Connection, tenant_id: UUID, source_ids: Sequence[UUID]) -> list[SourceName]:
    """Lock sources until the transaction ends. Those that do not exist are left out."""
    async with connection.cursor(row_factory=class_row(SourceName)) as cursor:
        await cursor.execute(LOCK_SOURCES, (tenant_id, list(source_ids)))
        return await cursor.fetchall()


async def move_sources(connection: Connection, tenant_id: UUID, source_ids: Sequence[UUID], collection: str) -> int:
    """Move sources to a collection and return how many were elsewhere.

    Raises Conflict if two of them, or one of them and one of the collection, have the same name.
    """
    ids = list(source_ids)
    names = [name for (name,) in await (await connection.execute(LIST_NAMES, (ids,))).fetchall()]
    row = await (await connection.execute(FIND_TAKEN_NAME, (tenant_id, collection, names, ids))).fetchone()
    twice = next((name for name, count in sorted(Counter(names).items()) if count > 1), None)
    if row is not None or twice is not None:
        raise _name_is_taken(row[0] if row else twice or "")
    try:
        async with connection.transaction():
            cursor = await connection.execute(MOVE_SOURCES, (collection, tenant_id, ids, collection))
            return cursor.rowcount
    except UniqueViolation as error:  # a document of this name was added at the same moment
        raise _name_is_taken("") from error


def _name_is_taken(name: str) -> Conflict:
    which = f"Two documents would have the name {name!r}" if name else "Two documents would have the same name"
    return Conflict(
        f"{which} in one collection, so nothing was moved.",
        "Choose another collection for it, or erase one of the documents.",
    )


async def rename_in_scopes(connection: Connection, tenant_id: UUID, old: str, new: str) -> int:
    """Replace the name of a collection in the scopes of ended runs, and return the number of runs."""
    return (await connection.execute(RENAME_IN_SCOPES, {"tenant": tenant_id, "old": old, "new": new})).rowcount


async def list_some_sources(
    connection: Connection, tenant_id: UUID, collection: str, limit: int
) -> list[tuple[UUID, str]]:
    """Return id and title of the first sources of a collection by name."""
    return await (await connection.execute(LIST_SOME_SOURCES, (tenant_id, collection, limit))).fetchall()


async def count_sources(connection: Connection, tenant_id: UUID, collection: str) -> int:
    """Return the number of sources of a collection, also of those that cannot be searched."""
    row = await (await connection.execute(COUNT_SOURCES, (tenant_id, collection))).fetchone()
    return row[0] if row else 0
