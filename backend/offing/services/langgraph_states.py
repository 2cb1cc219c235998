"""States of a thread for LangGraph's clients: reading them, and writing one from outside a run.

A written state is a run of the kind `state`, which executes no node. It is stored in one transaction, under a claim
like every other checkpoint, and only if the thread has no active run.
"""

import logging
from collections.abc import AsyncGenerator, Generator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, cast
from uuid import UUID

from langgraph.errors import InvalidUpdateError
from langgraph.types import StateSnapshot, StateUpdate

from offing.clock import new_id
from offing.core.errors import Conflict, InvalidInput, NotFound, OffingError
from offing.core.langgraph_run import LANGGRAPH
from offing.core.run import Budget, FencingToken, RunStatus, StopReason
from offing.core.step import StepDraft, StepKind
from offing.kernel.checkpointer import Checkpointer
from offing.kernel.execution import compile_graph
from offing.sdk import Graph
from offing.storage import claims, langgraph_runs, langgraph_threads, runs, steps, threads
from offing.storage.checkpoints import PostgresCheckpointStore
from offing.storage.claims import Release
from offing.storage.pool import Connection, Database
from offing.storage.runs import NewRun

NOBODY = UUID(int=0)
"""Stands for the run of a reader, which may not write."""

log = logging.getLogger(__name__)


class UnreadableStateError(Conflict):
    """`UnreadableStateError(problem, remedy)`: the graph's own code fails when it computes a state of a thread."""


@dataclass(frozen=True, slots=True)
class ThreadGraph:
    """A thread and the graph that its states belong to."""

    tenant_id: UUID
    thread_id: UUID
    graph: Graph


@asynccontextmanager
async def _open_thread(database: Database, thread: ThreadGraph, config: Mapping[str, Any]) -> AsyncGenerator[Any]:
    """Return the compiled graph over the stored checkpoints of a thread, for reading the state that `config` names.

    Raises NotFound for a namespace that the graph does not have, and UnreadableStateError.
    """
    fence = FencingToken(thread.tenant_id, NOBODY, 0, thread.thread_id)
    adapter = thread.graph.langgraph_adapter
    with _explain_failures(thread, config), adapter.execution_context() if adapter else nullcontext():
        yield _bind(thread.graph, database, fence)


async def get_state(
    database: Database, thread: ThreadGraph, config: Mapping[str, Any], *, with_subgraphs: bool = False
) -> StateSnapshot:
    """Return a state of a thread: of the checkpoint that `config` names, else the latest.

    Raises NotFound for a namespace that the graph does not have, and UnreadableStateError.
    """
    async with _open_thread(database, thread, config) as graph:
        return await graph.aget_state(_locate(thread, config), subgraphs=with_subgraphs)


async def load_output(database: Database, thread: ThreadGraph) -> Mapping[str, Any]:
    """Return the output of a thread's latest run: the values of its output, and the interrupts that wait.

    Raises UnreadableStateError.
    """
    async with _open_thread(database, thread, {}) as graph:
        state = await graph.aget_state(_locate(thread, {}))
        keys: Any = graph.output_channels
    values: Any = state.values
    if not isinstance(values, dict) or isinstance(keys, str):
        return values  # pyright: ignore[reportUnknownVariableType]
    values = cast(dict[str, Any], values)
    visible = {name: value for name, value in values.items() if name in keys}
    return {**visible, "__interrupt__": list(state.interrupts)} if state.interrupts else visible


async def list_states(
    database: Database,
    thread: ThreadGraph,
    config: Mapping[str, Any],
    *,
    limit: int,
    before: Mapping[str, Any] | None,
    metadata: Mapping[str, Any] | None,
) -> list[StateSnapshot]:
    """Return the states of a thread, newest first. `before` names the checkpoint after which the list begins.

    Raises as `get_state`.
    """
    async with _open_thread(database, thread, config) as graph:
        matches = graph.aget_state_history(
            _locate(thread, config),
            limit=limit,
            before=None if before is None else {"configurable": dict(before)},
            filter=dict(metadata) if metadata else None,
        )
        return [state async for state in matches]


@contextmanager
def _explain_failures(thread: ThreadGraph, config: Mapping[str, Any]) -> Generator[None]:
    """Replace errors of the graph's own code, such as of a reducer that rejects what a failed run wrote."""
    try:
        yield
    except OffingError:
        raise
    except Exception as error:
        if isinstance(error, ValueError) and config.get("checkpoint_ns"):  # LangGraph does not know the namespace
            raise NotFound("checkpoint", str(config["checkpoint_ns"])) from error
        log.warning("the state of thread %s cannot be computed", thread.thread_id, exc_info=error)
        problem = f"The graph {thread.graph.name} cannot compute this state: {type(error).__name__}: {error}."
        raise UnreadableStateError(problem[:500], "Continue from an earlier checkpoint.") from error


async def update_state(
    database: Database,
    thread: ThreadGraph,
    supersteps: Sequence[Sequence[StateUpdate]],
    config: Mapping[str, Any],
) -> Mapping[str, Any]:
    """Write states, one per superstep, and return the config of the last one.

    Raises Conflict if a run of the thread is active, and InvalidInput for updates that the graph rejects.
    """
    async with database.transaction(thread.tenant_id) as connection, _claim_thread(connection, thread) as fence:
        shared: Any = _OneTransaction(connection)
        graph = _bind(thread.graph, shared, fence)
        located = _locate(thread, config)
        try:
            for updates in supersteps:
                written = await graph.abulk_update_state(located, [list(updates)])
                located = {"configurable": {**located["configurable"], **written["configurable"]}}
        except (InvalidUpdateError, ValueError, TypeError, KeyError) as error:
            raise InvalidInput(
                "values", str(error) or type(error).__name__, "Send values that the graph's state accepts."
            ) from error
        await graph.checkpointer.flush(connection)
        left = await graph.aget_state({"configurable": {"thread_id": str(thread.thread_id)}})
        status = "interrupted" if left.next else "idle"
        await langgraph_threads.set_status(connection, thread.tenant_id, thread.thread_id, status)
    return located["configurable"]


async def copy_states(database: Database, source_id: UUID, target: ThreadGraph) -> None:
    """Copy all checkpoints of a thread to a new one."""
    async with (
        database.transaction(target.tenant_id) as connection,
        _claim_thread(connection, target, source_id) as fence,
    ):
        shared: Any = _OneTransaction(connection)
        await PostgresCheckpointStore(shared, fence, ()).copy_from_thread(connection, source_id)


@asynccontextmanager
async def _claim_thread(
    connection: Connection, thread: ThreadGraph, source_id: UUID | None = None
) -> AsyncGenerator[FencingToken]:
    """Store a run of the kind `state` under a claim, and end it.

    It has the scope, engines and tool policy of the last run of the thread `source_id`, which the next run of this
    thread therefore keeps. `None` means this thread.
    """
    await langgraph_runs.lock_thread(connection, thread.thread_id)
    source = source_id or thread.thread_id
    policy = await threads.find_requested_tool_policy(connection, source)
    new = NewRun(
        id=new_id(),
        thread_id=thread.thread_id,
        graph=thread.graph.name,
        graph_version=thread.graph.version,
        question="The state of the thread was changed",
        engines=await threads.get_engines(connection, source),
        tool_policy={},
        tool_policy_sha256="",
        budget=Budget(max_turns=0),
        scope=await threads.get_scope(connection, source),
        requested_tool_policy=policy,
        report_style=await threads.find_report_style(connection, source),
        kind="state",
        protocol=LANGGRAPH,
    )
    run = await runs.insert_run(connection, thread.tenant_id, new)
    await steps.append_external(connection, run.id, [StepDraft(StepKind.QUEUED, new.question)])
    fence = FencingToken(
        thread.tenant_id, run.id, await langgraph_runs.claim_state_run(connection, run.id), thread.thread_id
    )
    yield fence
    payload = {"status": RunStatus.DONE, "stop_reason": StopReason.ANSWERED}
    await steps.append_external(connection, run.id, [StepDraft(StepKind.ENDED, "Ended: the state is stored", payload)])
    await claims.release_run(connection, fence, Release(RunStatus.DONE, stop_reason=StopReason.ANSWERED))


@dataclass(frozen=True, slots=True)
class _OneTransaction:
    """Lets a checkpoint store work in the caller's transaction, whose pipeline decides how statements are sent."""

    connection: Connection

    @asynccontextmanager
    async def transaction(self, _: UUID, *, pipelined: bool = False) -> AsyncGenerator[Connection]:
        yield self.connection


def _bind(graph: Graph, database: Any, fence: FencingToken) -> Any:
    types = graph.langgraph_adapter.state_types if graph.langgraph_adapter else None
    store = PostgresCheckpointStore(database, fence, types)
    checkpointer = Checkpointer(store, turn_key=graph.turn_counter, keeps_all=types is not None)
    return compile_graph(graph.build).copy({"checkpointer": checkpointer})


def _locate(thread: ThreadGraph, config: Mapping[str, Any]) -> dict[str, Any]:
    named = {name: config[name] for name in ("checkpoint_id", "checkpoint_ns") if config.get(name)}
    return {"configurable": {**named, "thread_id": str(thread.thread_id)}}
