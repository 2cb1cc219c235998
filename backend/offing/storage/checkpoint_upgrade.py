"""A run's last checkpoint written anew for another version of its graph, and the run's version changed.

The checkpoint keeps its id, from which LangGraph makes the ids of tasks and interrupts. What it was before stays in the
history under another id, as the one that it follows.
"""

from collections.abc import Sequence
from typing import Any

from langgraph.checkpoint.base.id import uuid6

from offing.core.checkpoint import BEGINS, StoredCheckpoint, UpgradedCheckpoint
from offing.core.errors import Fenced
from offing.core.run import Fence
from offing.storage.checkpoints import PostgresCheckpoints
from offing.storage.fencing import OURS, SHARED, ours
from offing.storage.pool import Connection

CALLED = "select distinct ns from checkpoint where thread_id = %s and ns <> '' and metadata->'parents'->>'' = %s"

FOLLOW = f"""
    with guard as ({SHARED}),
    stored as (
      select * from checkpoint where thread_id = %(thread)s and ns = '' and checkpoint_id = %(id)s
         and exists (select from guard)),
    before as (
      update checkpoint c set created_at = stored.created_at
        from stored where c.thread_id = stored.thread_id and c.ns = '' and c.checkpoint_id = %(before)s)
    update checkpoint c set parent_id = %(before)s, turn = %(turn)s, nth = default, created_at = clock_timestamp()
      from stored where c.thread_id = stored.thread_id and c.ns = '' and c.checkpoint_id = stored.checkpoint_id
    returning 1
"""
"""The latest again, behind the one that holds what it was before, which is as old as it was. A fork from a step before
the upgrade begins with that one."""

DROP_WRITES = f"""
    with guard as ({SHARED})
    delete from checkpoint_write
     where thread_id = %(thread)s and ns = '' and checkpoint_id = %(id)s and exists (select from guard)
       and (task_id, idx) in (select * from unnest(%(tasks)s::text[], %(positions)s::int[]))
"""

BEFORE = """
    select r.graph_version from run r join (
      select run_id from checkpoint where thread_id = %s and ns = '' order by nth desc limit 1) as c on r.id = c.run_id
     where r.id <> %s and r.graph = %s
"""

REPIN = f"update run set graph_version = %(version)s where {OURS} returning 1"


async def called(
    connection: Connection, store: PostgresCheckpoints, fence: Fence, stored: StoredCheckpoint
) -> list[StoredCheckpoint]:
    """The latest checkpoints of the subgraphs that the superstep after a checkpoint has called."""
    rows = await (await connection.execute(CALLED, (fence.thread, stored.id))).fetchall()
    found = [await store.get(connection, ns, None) for (ns,) in rows]
    return [one for one in found if one is not None and one.metadata["parents"][""] == stored.id]


async def version_before(connection: Connection, fence: Fence, graph: str) -> str | None:
    """The version of the graph whose state a run would begin with. `None`: it has begun, or there is no such state."""
    row = await (await connection.execute(BEFORE, (fence.thread, fence.run, graph))).fetchone()
    return row[0] if row else None


async def rewrite(
    connection: Connection,
    store: PostgresCheckpoints,
    fence: Fence,
    stored: StoredCheckpoint,
    new: UpgradedCheckpoint,
    rebuilt: Sequence[str],
    turn: int | None,
) -> None:
    """Write a checkpoint anew. Raises Fenced, and StateTooLarge before anything is written.

    `rebuilt` names the channels of the stored one that are rebuilt from earlier ones.
    """
    before: Any = {**stored.checkpoint, "id": _new_id(stored)}
    after: Any = new.checkpoint
    rows = [
        store.prepare("", before, stored.metadata, parent=stored.parent, turn=None, delta=rebuilt, parent_writes=()),
        store.prepare("", after, new.metadata, parent=before["id"], turn=turn, delta=new.delta, parent_writes=()),
    ]
    for row in rows:
        await store.put(connection, row)
    given = {**_guard(fence), "before": before["id"], "turn": turn, "id": stored.id}
    if await (await connection.execute(FOLLOW, given)).fetchone() is None:
        raise Fenced(str(fence.run), fence.number)


async def follow(
    connection: Connection, store: PostgresCheckpoints, stored: StoredCheckpoint, new: UpgradedCheckpoint
) -> None:
    """Write a checkpoint that a run begins with, behind the last one of its thread. Raises Fenced, StateTooLarge."""
    after: Any = {**new.checkpoint, "id": _new_id(stored)}
    metadata = {**new.metadata, BEGINS: True}
    row = store.prepare("", after, metadata, parent=stored.id, turn=None, delta=new.delta, parent_writes=())
    await store.put(connection, row)


def _new_id(stored: StoredCheckpoint) -> str:
    return str(uuid6(clock_seq=stored.superstep))


async def drop_writes(connection: Connection, fence: Fence, id: str, writes: Sequence[tuple[str, int]]) -> None:
    """Remove what tasks wrote at a checkpoint, so that they run again."""
    tasks, positions = [task for task, _ in writes], [position for _, position in writes]
    await connection.execute(DROP_WRITES, {**_guard(fence), "id": id, "tasks": tasks, "positions": positions})


async def repin(connection: Connection, fence: Fence, version: str) -> None:
    """Give the run another version of its graph. Raises Fenced."""
    if await (await connection.execute(REPIN, {**_guard(fence), "version": version})).fetchone() is None:
        raise Fenced(str(fence.run), fence.number)


def _guard(fence: Fence) -> dict[str, Any]:
    return {**ours(fence), "thread": fence.thread, "tenant": fence.tenant}
