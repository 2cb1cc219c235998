"""Deletion of runs as rows. The caller decides what may be deleted.

The foreign keys delete what belongs to a run: steps, role calls, reports, ratings, files, checkpoints and child runs.
This module deletes what no foreign key reaches, and keeps what forks need.
"""

from collections.abc import Sequence
from uuid import UUID

from offing.core.run import RunStatus
from offing.storage import runs
from offing.storage.checkpoint_cleanup import DELETE_UNNEEDED
from offing.storage.pool import Connection
from offing.storage.runs import RunRow
from offing.storage.task_origins import delete_unused_tasks

LOCK_THREAD = "select id from thread where id = (select thread_id from run where id = %s) for update"
"""A question that is asked in the thread at the same time waits, and then finds the thread changed or deleted."""

LOCK_RUNS_FROM = f"""
    select {runs.COLUMNS} from run
     where thread_id = %(thread)s and (created_at, id) >= (%(created_at)s, %(run)s)
     order by created_at, id for update
"""

SORT_LATEST_FIRST = "select id from run where id = any(%s) order by created_at desc, id desc"

LIST_DESCENDANTS = """
    with recursive family(run_id) as (
      select unnest(%(runs)s::uuid[])
      union
      select c.run_id from family f join child_run c on c.parent_id = f.run_id)
    select r.id, r.status from family f join run r on r.id = f.run_id where not r.id = any(%(runs)s) for update of r
"""

LIST_FORKS = """
    with recursive fork(run_id, thread_id, is_direct) as (
      select f.id, f.thread_id, true from run f where f.forked_from_id = any(%(runs)s) and not f.id = any(%(runs)s)
      union
      select f.id, f.thread_id, false from fork o
        join run later on later.thread_id = o.thread_id
        join run f on f.forked_from_id = later.id)
    select o.run_id, o.is_direct, exists (select from run r where r.thread_id = o.thread_id and r.ended_at is null)
      from fork o
"""
"""Forks of the runs, forks of those and of later runs of their threads, and whether such a thread has an active run.
A run of such a thread reads what came before the fork's origin.
"""

KEEP_STATES = (
    "update checkpoint set run_id = null where run_id = any(%(runs)s) and not thread_id = any(%(threads)s)",
    "update checkpoint_write set run_id = null where run_id = any(%(runs)s) and not thread_id = any(%(threads)s)",
)
"""A fork has copies of the states with which its origin began."""

LIST_THREADS = "select distinct thread_id from run where id = any(%s)"

LIST_PROMPT_PARTS = """
    select distinct decode(part, 'hex') from role_call
     cross join jsonb_array_elements(prompt) as message cross join jsonb_array_elements_text(message->1) as part
     where run_id = any(%s)
"""

LOCK_PROMPT_PARTS = "lock table text_part in exclusive mode"
"""Waits until each role call that is being stored is visible, and lets no other one begin."""

DELETE_PROMPT_PARTS = """
    delete from text_part where tenant_id = %(tenant)s and sha256 = any(%(parts)s)
       and not sha256 = any(array(
         select decode(part, 'hex') from role_call
          cross join jsonb_array_elements(prompt) as message cross join jsonb_array_elements_text(message->1) as part
          where tenant_id = %(tenant)s and part = any(%(hexes)s)))
"""

DELETE_STATES = f"""
    with recursive of_thread as (select %(thread)s::uuid as id),
    kept as (
      select ns, checkpoint_id, parent_id, delta_channels from checkpoint
       where thread_id = %(thread)s and not coalesce(run_id = any(%(runs)s), false)),
    {DELETE_UNNEEDED}
    select count(*) from spare
"""

DELETE_RUNS = "delete from run where id = any(%s)"

DELETE_EMPTY_THREAD = "delete from thread t where id = %s and not exists (select from run where thread_id = t.id)"


async def sort_latest_first(connection: Connection, run_ids: Sequence[UUID]) -> list[UUID]:
    """Return those of the runs that exist, the latest first."""
    return [id for (id,) in await (await connection.execute(SORT_LATEST_FIRST, (list(run_ids),))).fetchall()]


async def lock_runs_from(connection: Connection, run_id: UUID) -> list[RunRow]:
    """Lock a run, the later runs of its thread and the thread, and return the runs, oldest first.

    Raises `NotFound` if there is no such run.
    """
    await connection.execute(LOCK_THREAD, (run_id,))
    first = await runs.get_run(connection, run_id)
    values = {"thread": first.thread_id, "created_at": first.created_at, "run": run_id}
    return [runs.run_from_row(row) for row in await (await connection.execute(LOCK_RUNS_FROM, values)).fetchall()]


async def lock_descendants(connection: Connection, run_ids: Sequence[UUID]) -> dict[UUID, RunStatus]:
    """Lock the runs that these runs started, and those that these started, and return their status."""
    rows = await (await connection.execute(LIST_DESCENDANTS, {"runs": list(run_ids)})).fetchall()
    return {run_id: RunStatus(status) for run_id, status in rows}


async def list_forks(connection: Connection, run_ids: Sequence[UUID]) -> list[tuple[UUID, bool, bool]]:
    """Return forks that read the thread of these runs: id, whether it is a fork of one of them, and whether it or a
    later run of its thread is active.
    """
    rows = await (await connection.execute(LIST_FORKS, {"runs": list(run_ids)})).fetchall()
    return [(run_id, is_direct, is_active) for run_id, is_direct, is_active in rows]


async def delete_runs(
    connection: Connection,
    tenant_id: UUID,
    thread_id: UUID,
    run_ids: Sequence[UUID],
    descendants: Sequence[UUID],
    *,
    keeps_thread: bool = False,
) -> None:
    """Delete ended runs of this thread with the runs that they started. All of them must be locked.

    The thread is deleted with its last run unless `keeps_thread`.
    """
    everything = [*run_ids, *descendants]
    threads = [row[0] for row in await (await connection.execute(LIST_THREADS, (everything,))).fetchall()]
    parts = [row[0] for row in await (await connection.execute(LIST_PROMPT_PARTS, (everything,))).fetchall()]
    for statement in KEEP_STATES:
        await connection.execute(statement, {"runs": everything, "threads": threads})
    await connection.execute(DELETE_STATES, {"thread": thread_id, "runs": everything}, prepare=False)
    await delete_unused_tasks(connection, everything)
    await connection.execute(DELETE_RUNS, (list(run_ids),))
    if not keeps_thread:
        await connection.execute(DELETE_EMPTY_THREAD, (thread_id,))
    await _delete_prompt_parts(connection, tenant_id, parts)


async def _delete_prompt_parts(connection: Connection, tenant_id: UUID, parts: Sequence[bytes]) -> None:
    """Delete those of the prompt parts that no role call uses any more."""
    if not parts:
        return
    await connection.execute(LOCK_PROMPT_PARTS)
    values = {"tenant": tenant_id, "parts": list(parts), "hexes": [part.hex() for part in parts]}
    await connection.execute(DELETE_PROMPT_PARTS, values, prepare=False)
