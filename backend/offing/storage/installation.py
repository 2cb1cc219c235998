"""State of the installation as a whole: worker processes, the queue, migrations and sizes of tables."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from offing.storage.pool import Connection, Database

RECORD_WORKER = "select app.record_worker(%s, %s, %s, %s)"

FORGET_WORKER = "select app.forget_worker(%s)"

LIST_WORKERS = "select name, version, slots, runs, started_at, silent_seconds from app.list_workers(%s)"

GET_QUEUE_STATE = "select run_count, oldest_seconds from app.get_queue_state()"

GET_OWN_QUEUE_STATE = """
    select count(*), extract(epoch from clock_timestamp() - min(queued_at))::float8 from run
     where status = 'queued' and kind <> 'rollout' and (not_before is null or not_before <= clock_timestamp())
"""

LIST_MIGRATIONS = "select version from public.offing_migration order by version"

GET_SERVER_VERSION = "select current_setting('server_version')"

LIST_TABLE_SIZES = """
    select c.relname, pg_total_relation_size(c.oid), greatest(c.reltuples, 0)::bigint
      from pg_class c where c.relnamespace = 'app'::regnamespace and c.relkind in ('r', 'p') order by 2 desc, 1
"""

GET_DATABASE_SIZE = "select pg_database_size(current_database())"

MAX_WORKERS = 200


@dataclass(frozen=True, slots=True)
class WorkerRow:
    """A worker process of the installation."""

    name: str
    """Its host, process id and a nonce."""
    version: str
    slots: int
    """Maximum number of runs that it advances at the same time."""
    runs: int
    started_at: datetime
    silent_seconds: float
    """Seconds since it was last seen."""


@dataclass(frozen=True, slots=True)
class QueueState:
    """Runs, other than rollouts, that no worker has claimed yet although they could be."""

    run_count: int
    oldest_seconds: float | None
    """For how long the oldest of them has waited. `None` if there is none."""


@dataclass(frozen=True, slots=True)
class TableSize:
    table: str
    size_bytes: int
    """Size with indexes and large values."""
    row_estimate: int
    """Rows as of the last analysis by Postgres. 0 also means that there was none."""


async def record_worker(database: Database, name: str, version: str, slots: int, runs: int) -> None:
    """Record that a worker process is alive."""
    await database.call_function(RECORD_WORKER, (name, version, slots, runs))


async def forget_worker(database: Database, name: str) -> None:
    """Forget a worker process that has ended."""
    await database.call_function(FORGET_WORKER, (name,))


async def list_workers(database: Database) -> Sequence[WorkerRow]:
    """Return at most `MAX_WORKERS` worker processes of the last day, most recently seen first."""
    return [WorkerRow(*row) for row in await database.call_function(LIST_WORKERS, (MAX_WORKERS,))]


async def get_queue_state(database: Database) -> QueueState:
    """Return the queue of all tenants."""
    return QueueState(*(await database.call_function(GET_QUEUE_STATE, ()))[0])


async def get_own_queue_state(connection: Connection) -> QueueState:
    """Return the queue of the transaction's tenant."""
    row = await (await connection.execute(GET_OWN_QUEUE_STATE)).fetchone()
    return QueueState(*row) if row else QueueState(0, None)


async def list_migrations(database: Database) -> Sequence[str]:
    """Return the versions of the applied migrations, in order."""
    return [row[0] for row in await database.call_function(LIST_MIGRATIONS, ())]


async def get_postgres_version(database: Database) -> str:
    return str((await database.call_function(GET_SERVER_VERSION, ()))[0][0])


async def list_table_sizes(database: Database) -> Sequence[TableSize]:
    """Return the tables of the schema, largest first."""
    return [TableSize(*row) for row in await database.call_function(LIST_TABLE_SIZES, ())]


async def get_database_size(database: Database) -> int:
    """Return the size of the database in bytes."""
    return int((await database.call_function(GET_DATABASE_SIZE, ()))[0][0])
