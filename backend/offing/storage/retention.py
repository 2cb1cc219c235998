"""Removing what is kept for a time: spare checkpoints of ended runs, old files of runs, spent login links.

Reports, steps, turns and rollouts are never removed here. Each sweep does a bounded amount, each run in a transaction
of its tenant's own.
"""

from collections.abc import Sequence
from uuid import UUID

from offing.storage.checkpoint_pruning import KEPT_ONLY
from offing.storage.pool import Connection, Database

SWEEP_ENDED = "select run, tenant from app.sweep_ended(%s::interval, %s)"

SWEEP_RUN_FILES = "select run, tenant from app.sweep_run_files(%s::interval, %s)"

SWEEP_LOGINS = "select app.sweep_logins(%s)"

SWEEP_ITEMS = "select app.sweep_store_items(%s)"

VERSIONS_IN_USE = "select app.graph_versions_in_use(%s)"

PRUNE = f"""
    with recursive ended as (
      select id, thread_id, durability from run
       where id = %(run)s and ended_at is not null and pruned_at is null for update skip locked),
    of_thread as (select thread_id as id from ended),
    kept as (
      select ns, checkpoint_id, parent_id, delta from (
        select c.*, e.durability, c.run_id = e.id as is_its_own,
               row_number() over (partition by c.ns, c.run_id order by c.nth desc) as latest
          from ended e join checkpoint c on c.thread_id = e.thread_id) as c
       where not is_its_own or (latest = 1 and ns not like '%%:%%' and durability <> 'exit')),
    {KEPT_ONLY},
    noted as (update run r set pruned_at = clock_timestamp() from ended e where r.id = e.id)
    select count(*) from spare
"""
"""All but the last checkpoint of the graph and of each subgraph that keeps a memory of its own, which are what the next
run of the thread goes on from, and what those are read from. A subgraph that was called by a task has that task's id
after a colon. Of a rollout that is done again whole, none is needed."""

DROP_FILES = "delete from run_file where run_id = %s"


async def prune_checkpoints(database: Database, days: float, most: int) -> int:
    """Remove spare checkpoints of up to `most` runs that ended `days` ago. How many runs were due.

    Another worker may find the same runs: each is done by the one that comes first.
    """
    due = await database.platform(SWEEP_ENDED, (f"{days} days", most))
    for run, tenant in due:
        async with database.transaction(tenant) as connection:
            await prune_run(connection, run)
    return len(due)


async def prune_run(connection: Connection, run: UUID) -> int:
    """Remove the spare checkpoints of an ended run. How many there were; 0 also where that was or is being done."""
    row = await (await connection.execute(PRUNE, {"run": run}, prepare=False)).fetchone()
    return int(row[0]) if row else 0


async def drop_run_files(database: Database, days: float, most: int) -> int:
    """Remove the files of up to `most` runs that ended `days` ago. How many runs there were."""
    due = await database.platform(SWEEP_RUN_FILES, (f"{days} days", most))
    for run, tenant in due:
        async with database.transaction(tenant) as connection:
            await connection.execute(DROP_FILES, (run,))
    return len(due)


async def drop_logins(database: Database, most: int) -> int:
    """Remove login links that were used or have expired, and expired sessions. How many there were."""
    return int((await database.platform(SWEEP_LOGINS, (most,)))[0][0])


async def drop_items(database: Database, most: int) -> int:
    """Remove items of LangGraph's store that have expired. How many there were."""
    return int((await database.platform(SWEEP_ITEMS, (most,)))[0][0])


async def graph_versions_in_use(database: Database, versions: Sequence[str]) -> frozenset[str]:
    """Those of these versions of graphs that runs or rollout groups name, of any tenant, ended ones included."""
    return frozenset(row[0] for row in await database.platform(VERSIONS_IN_USE, (list(versions),)))
