"""Deletion of data that is kept for a limited time.

These are checkpoints of ended runs, old files of runs, and used login links. Reports, steps,
role calls and rollouts are never deleted here. Each sweep does a limited amount of work, and
each run is processed in a transaction of its tenant.
"""

from collections.abc import Sequence
from uuid import UUID

from offing.storage.checkpoint_cleanup import DELETE_UNNEEDED
from offing.storage.pool import Connection, Database

SWEEP_ENDED = "select run_id, tenant_id from app.sweep_ended_runs(%s::interval, %s)"

SWEEP_RUN_FILES = "select run_id, tenant_id from app.sweep_run_files(%s::interval, %s)"

SWEEP_LOGINS = "select app.sweep_logins(%s)"

SWEEP_ITEMS = "select app.sweep_store_items(%s)"

LIST_VERSIONS_IN_USE = "select app.list_graph_versions_in_use(%s)"

PRUNE_RUN = f"""
    with recursive ended as (
      select id, thread_id, durability from run
       where id = %(run)s and ended_at is not null and pruned_at is null for update skip locked),
    of_thread as (select thread_id as id from ended),
    kept as (
      select ns, checkpoint_id, parent_id, delta_channels from (
        select c.*, e.durability, c.run_id is not distinct from e.id as is_its_own,
               row_number() over (partition by c.ns, c.run_id order by c.nth desc) as latest
          from ended e join checkpoint c on c.thread_id = e.thread_id) as c
       where not is_its_own or (latest = 1 and durability <> 'exit'
                                and (ns not like '%%:%%' or exists (select from langgraph_thread t, ended e
                                                                     where t.thread_id = e.thread_id
                                                                       and t.status = 'interrupted')))),
    {DELETE_UNNEEDED},
    noted as (update run r set pruned_at = clock_timestamp() from ended e where r.id = e.id)
    select count(*) from spare
"""
"""Deletes all but the last checkpoint of the graph and of each subgraph with its own memory, with
which the next run of the thread begins, and what those need. A subgraph that was called by a
task has that task's id after a colon. A rollout needs no checkpoint, because it would be retried
from the start.
"""

DELETE_RUN_FILES = "delete from run_file where run_id = %s"


async def prune_checkpoints(database: Database, min_age_days: float, limit: int) -> int:
    """Delete unneeded checkpoints of at most `limit` runs that ended `min_age_days` ago.

    Return the number of runs. Several workers may find the same runs. Each run is processed
    once.
    """
    due = await database.call_function(SWEEP_ENDED, (f"{min_age_days} days", limit))
    for run, tenant in due:
        async with database.transaction(tenant) as connection:
            await prune_run(connection, run)
    return len(due)


async def prune_run(connection: Connection, run_id: UUID) -> int:
    """Delete the unneeded checkpoints of an ended run and return their number.

    0 also means that another worker did it.
    """
    row = await (await connection.execute(PRUNE_RUN, {"run": run_id}, prepare=False)).fetchone()
    return int(row[0]) if row else 0


async def delete_run_files(database: Database, min_age_days: float, limit: int) -> int:
    """Delete the files of at most `limit` runs that ended `min_age_days` ago.

    Return the number of runs.
    """
    due = await database.call_function(SWEEP_RUN_FILES, (f"{min_age_days} days", limit))
    for run, tenant in due:
        async with database.transaction(tenant) as connection:
            await connection.execute(DELETE_RUN_FILES, (run,))
    return len(due)


async def delete_expired_logins(database: Database, limit: int) -> int:
    """Delete used and expired login links and expired sessions. Return their number."""
    return int((await database.call_function(SWEEP_LOGINS, (limit,)))[0][0])


async def delete_expired_items(database: Database, limit: int) -> int:
    """Delete expired items of LangGraph's store. Return their number."""
    return int((await database.call_function(SWEEP_ITEMS, (limit,)))[0][0])


async def list_graph_versions_in_use(database: Database, versions: Sequence[str]) -> frozenset[str]:
    """Return which of the given graph versions are in use.

    A version is in use if a run or rollout group of any tenant names it, ended or not.
    """
    return frozenset(row[0] for row in await database.call_function(LIST_VERSIONS_IN_USE, (list(versions),)))
