"""States of threads as requests name them."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from langgraph.types import Interrupt, StateSnapshot, StateUpdate

from offing.core.errors import InvalidInput, NotFound
from offing.core.langgraph_run import RunArguments
from offing.kernel.langgraph_events import list_graph_interrupts
from offing.kernel.langgraph_invocation import build_graph_input
from offing.protocols.langgraph.bodies import CheckpointIn, StateUpdateIn
from offing.protocols.langgraph.context import Caller
from offing.services import langgraph_states, langgraph_threads
from offing.services.langgraph_states import ThreadGraph, UnreadableStateError
from offing.services.langgraph_threads import find_graph
from offing.storage.langgraph_threads import LangGraphThreadRow


async def open_thread(caller: Caller, thread_id: UUID) -> tuple[LangGraphThreadRow, ThreadGraph | None]:
    """Return a thread, and with it its graph if it has one. Raises NotFound."""
    thread = await langgraph_threads.get_thread(caller.database, caller.tenant_id, thread_id)
    graph = find_graph(thread, caller.context.graphs)
    return thread, None if graph is None else ThreadGraph(caller.tenant_id, thread_id, graph)


async def load_latest_state(caller: Caller, thread: LangGraphThreadRow) -> StateSnapshot | None:
    """Return the latest state of a thread.

    `None` means that it has none, or that its graph is not installed here or fails to compute it.
    """
    try:
        graph = find_graph(thread, caller.context.graphs)
    except InvalidInput:
        return None
    if graph is None:
        return None
    try:
        return await langgraph_states.get_state(caller.database, ThreadGraph(caller.tenant_id, thread.id, graph), {})
    except UnreadableStateError:  # the log has it; one such thread does not break a list
        return None


async def list_interrupts(caller: Caller, thread_id: UUID) -> list[Interrupt[Any]]:
    """Return the interrupts at which a thread stopped. None while a run is active, and without the thread."""
    try:
        thread, graph = await open_thread(caller, thread_id)
    except NotFound:
        return []
    if graph is None or thread.status != "interrupted":
        return []
    state = await langgraph_states.get_state(caller.database, graph, {})
    return list_graph_interrupts(state.interrupts)


def build_update(fields: StateUpdateIn) -> StateUpdate:
    """Return one update of a superstep: values, or a command."""
    values: Any = fields.values
    if fields.command is not None:
        values = build_graph_input(RunArguments(command=fields.command))
    return StateUpdate(values, fields.as_node, fields.task_id)


def locate_checkpoint(checkpoint: CheckpointIn | None, checkpoint_id: str | None) -> Mapping[str, Any]:
    """Return the config that names a checkpoint. Empty means the latest."""
    if checkpoint is None:
        return {} if checkpoint_id is None else {"checkpoint_id": checkpoint_id}
    named = {"checkpoint_id": checkpoint.checkpoint_id, "checkpoint_ns": checkpoint.checkpoint_ns}
    return {name: value for name, value in named.items() if value}
