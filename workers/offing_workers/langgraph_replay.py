"""What the replay of a run of LangGraph's clients begins with: its input, its configuration, and its thread's state."""

from typing import Any
from uuid import UUID

from langgraph.checkpoint.memory import InMemorySaver

from offing.core.checkpoint import StoredCheckpoint
from offing.core.errors import InvalidInput
from offing.core.langgraph_run import LANGGRAPH
from offing.core.run import FencingToken
from offing.kernel.call_path import CallPathTracker
from offing.kernel.checkpointer import DELTA_COUNTERS_KEY
from offing.kernel.execution import compile_graph
from offing.kernel.replay import THREAD_ID
from offing.kernel.stored_run import ReplayOpening
from offing.sdk import Graph
from offing.storage import langgraph_runs
from offing.storage.checkpoints import PostgresCheckpointStore
from offing.storage.pool import Connection, Database
from offing.storage.runs import RunRow
from offing_workers.langgraph_run import LangGraphRun, choose_encoder


class ReplaySaver(InMemorySaver):
    """A checkpointer in memory that begins with a stored checkpoint. `None` means that it begins empty."""

    def __init__(self, start: StoredCheckpoint | None = None) -> None:
        super().__init__()  # pyright: ignore[reportUnknownMemberType]
        if start is None:
            return
        named: dict[str, Any] = {"thread_id": THREAD_ID, "checkpoint_ns": ""}
        checkpoint: Any = start.checkpoint
        metadata: Any = start.metadata
        self.put({"configurable": named}, checkpoint, metadata, checkpoint["channel_versions"])
        for write in start.writes:
            config: Any = {"configurable": {**named, "checkpoint_id": start.id}}
            self.put_writes(config, [(write.channel, write.value)], write.task_id, write.task_path)

    def get_next_version(self, current: str | None, channel: None) -> str:
        """Return a version that sorts after those of stored checkpoints."""
        return f"{int(str(current).partition('.')[0]) + 1 if current else 1:08d}"


class _SilentStream:
    """Takes the events of a replay, which nobody follows."""

    async def open(self, paths: CallPathTracker | None, position: int, *, was_lost: bool) -> None: ...

    def pass_checkpoint(self, step: int) -> None: ...

    def send(self, name: str, data: Any) -> None: ...

    async def settle(self) -> None: ...

    async def end(self) -> None: ...


async def load_opening(database: Database, tenant_id: UUID, row: RunRow, graph: Graph) -> ReplayOpening | None:
    """Return what such a run began with. `None` means that it began with its question, as Offing's own runs do.

    Raises InvalidInput if the state of its thread with which it began is not stored any more.
    """
    if row.protocol != LANGGRAPH or graph.langgraph_adapter is None:
        return None
    if row.kind == "state":
        raise _refuse(row, "it is a state that a client wrote, which executed no node")
    if row.forked_at is not None:
        raise _refuse(row, "it is a fork")
    store = PostgresCheckpointStore(
        database, FencingToken(tenant_id, row.id, 0, row.thread_id), graph.langgraph_adapter.state_types
    )
    async with database.transaction(tenant_id) as connection:
        stored = await langgraph_runs.find_arguments(connection, row.id)
        needs_state = stored.arguments.checkpoint is not None or await langgraph_runs.has_earlier_run(
            connection, row.id
        )
        start = await _load_start(connection, store, row) if needs_state else None
    if start is not None and (stored.arguments.command or {}).get("resume") is not None:
        _check_resumed(row, graph)
    run = LangGraphRun(tenant_id, row, stored, _SilentStream(), choose_encoder(stored.arguments))
    return ReplayOpening(run.build_input(), run.build_invocation(has_begun=False), start)


async def _load_start(connection: Connection, store: PostgresCheckpointStore, row: RunRow) -> StoredCheckpoint | None:
    """Return the checkpoint with which a run began. `None` means that its thread had none."""
    first = await langgraph_runs.find_first_checkpoint(connection, row.id)
    if first is None:
        raise _refuse(row, "it stored no state, so that the state of its thread at its start is unknown")
    if first.parent_id is None:
        return None
    start = await store.find_checkpoint(connection, "", first.parent_id)
    if start is None or start.run_id == row.id:
        raise _refuse(row, "the state of its thread with which it began is not stored any more")
    if start.metadata.get(DELTA_COUNTERS_KEY):
        raise _refuse(row, "the state with which it began has a DeltaChannel, which a replay does not rebuild")
    return start


def _check_resumed(row: RunRow, graph: Graph) -> None:
    if any(True for _ in compile_graph(graph.build).get_subgraphs()):
        raise _refuse(row, "it resumed an interrupt of a graph with subgraphs, whose states are deleted afterwards")


def _refuse(row: RunRow, problem: str) -> InvalidInput:
    return InvalidInput("RUN", f"run {row.id} cannot be replayed: {problem}", "Replay another run.")
