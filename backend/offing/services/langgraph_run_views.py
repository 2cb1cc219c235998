"""What a run of LangGraph's clients began with, left in its thread, and asks of a person, and the person's response."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from langgraph.types import Interrupt

from offing.core.errors import NotFound
from offing.core.input_request import InputPrompt, InputResponse, check_response, parse_interrupt_value
from offing.core.langgraph_run import Multitask
from offing.core.run import TERMINAL_STATUSES
from offing.kernel.interrupts import prompt_from_interrupt
from offing.kernel.langgraph_events import list_graph_interrupts
from offing.kernel.langgraph_json import to_json
from offing.sdk import Graph
from offing.services import langgraph_runs, langgraph_states
from offing.services.langgraph_runs import NewLangGraphRun, RunPlatform
from offing.services.langgraph_states import ThreadGraph, UnreadableStateError
from offing.storage import langgraph_runs as rows
from offing.storage import run_webhooks
from offing.storage.langgraph_runs import LangGraphRunRow
from offing.storage.pool import Database


@dataclass(frozen=True, slots=True)
class WaitingInterrupt:
    """An interrupt of the graph that waits for a response."""

    id: str
    prompt: InputPrompt


@dataclass(frozen=True, slots=True)
class LangGraphRunView:
    """A run as its client asked for it, and what it left."""

    row: LangGraphRunRow
    values: Any
    """The values of its last state. `None` means that it wrote none, that they are deleted, or that they cannot be
    computed here."""
    next_nodes: tuple[str, ...]
    """The nodes that come next, if the run stopped before its graph's end."""
    interrupts: tuple[WaitingInterrupt, ...]
    """Empty also if another run followed in the thread."""

    @property
    def has_ended(self) -> bool:
        return self.row.status in TERMINAL_STATUSES

    def get_interrupt(self, interrupt_id: str) -> WaitingInterrupt:
        """Return an interrupt that waits. Raises NotFound."""
        for one in self.interrupts:
            if one.id == interrupt_id:
                return one
        raise NotFound("interrupt", interrupt_id)


async def get_view(database: Database, tenant_id: UUID, graphs: Mapping[str, Graph], run_id: UUID) -> LangGraphRunView:
    """Return what a run began with and left. Raises NotFound, also for a run that no client of LangGraph made."""
    async with database.transaction(tenant_id) as connection:
        row = await rows.get_run(connection, run_id)
        checkpoint = await run_webhooks.find_last_checkpoint(connection, row.thread_id, row.id)
        is_last = await rows.find_last_run(connection, row.thread_id) == run_id
    none = LangGraphRunView(row, None, (), ())
    if checkpoint is None or row.graph not in graphs:
        return none
    thread = ThreadGraph(tenant_id, row.thread_id, graphs[row.graph])
    try:
        state = await langgraph_states.get_state(database, thread, {"checkpoint_id": checkpoint})
    except UnreadableStateError:  # the log has it
        return none
    waits = is_last and row.status in TERMINAL_STATUSES
    raised: list[Interrupt[Any]] = list_graph_interrupts(state.interrupts) if waits else []
    interrupts = tuple(WaitingInterrupt(one.id, prompt_from_interrupt(one)) for one in raised)
    return replace(none, values=to_json(state.values), next_nodes=tuple(state.next), interrupts=interrupts)


async def respond_to_interrupt(
    platform: RunPlatform, tenant_id: UUID, run_id: UUID, interrupt_id: str, response: InputResponse
) -> LangGraphRunRow:
    """Respond to an interrupt at which a run ended. Return the run that continues from it.

    It is invoked as the run was. Raises NotFound for an interrupt that does not wait, Conflict if a run of the thread
    is active, and InvalidInput for a response that does not fit.
    """
    view = await get_view(platform.database, tenant_id, platform.graphs, run_id)
    value = parse_interrupt_value(check_response(view.get_interrupt(interrupt_id).prompt, response))
    row = view.row
    arguments = replace(row.arguments, input=None, command={"resume": {interrupt_id: value}}, checkpoint=None)
    new = NewLangGraphRun(
        row.graph, row.assistant_id, arguments, row.thread_id, metadata=row.metadata, multitask=Multitask.REJECT
    )
    return await langgraph_runs.create_run(platform, tenant_id, new)
