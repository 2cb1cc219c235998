"""Upgrade of a run to another version of its graph.

The last checkpoint of the run is rewritten and its graph version is changed. The checkpoint
keeps its id, from which LangGraph derives the ids of tasks and interrupts. The previous content
stays in the history under another id, as its parent.
"""

from collections.abc import Sequence
from typing import Any

from langgraph.checkpoint.base.id import uuid6

from offing.core.checkpoint import RUN_START_KEY, StoredCheckpoint, UpgradedCheckpoint
from offing.core.errors import LeaseLostError
from offing.core.run import FencingToken
from offing.storage.checkpoints import PostgresCheckpointStore
from offing.storage.fencing_sql import LOCK_OWNED_RUN, OWNS_RUN, fence_parameters
from offing.storage.pool import Connection

LIST_CALLED_SUBGRAPHS = (
    "select distinct ns from checkpoint where thread_id = %s and ns <> '' and metadata->'parents'->>'' = %s"
)

INSERT_FOLLOWING_CHECKPOINT = f"""
    with guard as ({LOCK_OWNED_RUN}),
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
"""Makes the rewritten checkpoint the latest again, after the one with the previous content, which
keeps its age. A fork from a step before the upgrade begins with that one.
"""

DELETE_WRITES = f"""
    with guard as ({LOCK_OWNED_RUN})
    delete from checkpoint_write
     where thread_id = %(thread)s and ns = '' and checkpoint_id = %(id)s and exists (select from guard)
       and (task_id, idx) in (select * from unnest(%(tasks)s::text[], %(positions)s::int[]))
"""

FIND_PREVIOUS_VERSION = """
    select r.graph_version from run r join (
      select run_id from checkpoint where thread_id = %s and ns = '' order by nth desc limit 1) as c on r.id = c.run_id
     where r.id <> %s and r.graph = %s
"""

SET_GRAPH_VERSION = f"update run set graph_version = %(version)s where {OWNS_RUN} returning 1"


async def list_called_subgraphs(
    connection: Connection, store: PostgresCheckpointStore, fence: FencingToken, stored: StoredCheckpoint
) -> list[StoredCheckpoint]:
    """Return the latest checkpoints of subgraphs called in the superstep after a checkpoint."""
    rows = await (await connection.execute(LIST_CALLED_SUBGRAPHS, (fence.thread_id, stored.id))).fetchall()
    checkpoints = [await store.find_checkpoint(connection, ns, None) for (ns,) in rows]
    return [one for one in checkpoints if one is not None and one.metadata["parents"][""] == stored.id]


async def find_previous_version(connection: Connection, fence: FencingToken, graph: str) -> str | None:
    """Return the graph version of the state with which a run would begin.

    `None` means that the run has begun or that there is no such state.
    """
    row = await (await connection.execute(FIND_PREVIOUS_VERSION, (fence.thread_id, fence.run_id, graph))).fetchone()
    return row[0] if row else None


async def rewrite_checkpoint(
    connection: Connection,
    store: PostgresCheckpointStore,
    fence: FencingToken,
    stored: StoredCheckpoint,
    upgraded: UpgradedCheckpoint,
    rebuilt_channels: Sequence[str],
    turn: int | None,
) -> None:
    """Replace the content of a checkpoint.

    Raises `LeaseLostError`, or `StateTooLargeError` before anything is written.
    `rebuilt_channels` are the channels of the stored checkpoint that are rebuilt from earlier
    ones.
    """
    before: Any = {**stored.checkpoint, "id": _derive_checkpoint_id(stored)}
    after: Any = upgraded.checkpoint
    rows = [
        store.prepare(
            "",
            before,
            stored.metadata,
            parent_id=stored.parent_id,
            turn=None,
            delta_channels=rebuilt_channels,
            parent_writes=(),
        ),
        store.prepare(
            "",
            after,
            upgraded.metadata,
            parent_id=before["id"],
            turn=turn,
            delta_channels=upgraded.delta_channels,
            parent_writes=(),
        ),
    ]
    for row in rows:
        await store.put_checkpoint(connection, row)
    parameters = {**_guard_parameters(fence), "before": before["id"], "turn": turn, "id": stored.id}
    if await (await connection.execute(INSERT_FOLLOWING_CHECKPOINT, parameters)).fetchone() is None:
        raise LeaseLostError(str(fence.run_id), fence.number)


async def insert_following_checkpoint(
    connection: Connection, store: PostgresCheckpointStore, stored: StoredCheckpoint, upgraded: UpgradedCheckpoint
) -> None:
    """Write the checkpoint with which a run begins, after the last one of its thread.

    Raises `LeaseLostError` and `StateTooLargeError`.
    """
    after: Any = {**upgraded.checkpoint, "id": _derive_checkpoint_id(stored)}
    metadata = {**upgraded.metadata, RUN_START_KEY: True}
    row = store.prepare(
        "", after, metadata, parent_id=stored.id, turn=None, delta_channels=upgraded.delta_channels, parent_writes=()
    )
    await store.put_checkpoint(connection, row)


def _derive_checkpoint_id(stored: StoredCheckpoint) -> str:
    return str(uuid6(clock_seq=stored.superstep))


async def delete_writes(
    connection: Connection, fence: FencingToken, checkpoint_id: str, writes: Sequence[tuple[str, int]]
) -> None:
    """Delete writes of tasks at a checkpoint, so that these tasks run again."""
    tasks, positions = [task for task, _ in writes], [position for _, position in writes]
    await connection.execute(
        DELETE_WRITES, {**_guard_parameters(fence), "id": checkpoint_id, "tasks": tasks, "positions": positions}
    )


async def set_graph_version(connection: Connection, fence: FencingToken, graph_version: str) -> None:
    """Set the graph version of the run. Raises `LeaseLostError`."""
    if (
        await (
            await connection.execute(SET_GRAPH_VERSION, {**_guard_parameters(fence), "version": graph_version})
        ).fetchone()
        is None
    ):
        raise LeaseLostError(str(fence.run_id), fence.number)


def _guard_parameters(fence: FencingToken) -> dict[str, Any]:
    return {**fence_parameters(fence), "thread": fence.thread_id, "tenant": fence.tenant_id}
