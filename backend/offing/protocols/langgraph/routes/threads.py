"""Threads: created, found, changed, copied and deleted."""

from collections.abc import Sequence
from uuid import UUID

from fastapi import APIRouter, Response

from offing.core.errors import InvalidInput
from offing.protocols.langgraph.bodies import (
    StateUpdateIn,
    ThreadChange,
    ThreadFilterIn,
    ThreadIn,
    ThreadSearch,
)
from offing.protocols.langgraph.context import Caller, CurrentCaller
from offing.protocols.langgraph.rendering import render_thread, respond_json, respond_page
from offing.protocols.langgraph.state_updates import build_update, load_latest_state
from offing.services import langgraph_states, langgraph_threads
from offing.services.langgraph_states import ThreadGraph
from offing.services.langgraph_threads import NewThread, find_graph
from offing.storage.langgraph_threads import LangGraphThreadRow, ThreadFilter

router = APIRouter(prefix="/threads")


@router.post("")
async def create_thread(caller: CurrentCaller, body: ThreadIn | None = None) -> Response:
    """Create a thread, with states if `supersteps` has some."""
    fields = body or ThreadIn()
    new = NewThread(fields.thread_id, fields.metadata, keeps_existing=fields.if_exists == "do_nothing")
    thread = await langgraph_threads.create_thread(caller.database, caller.tenant_id, new)
    if fields.supersteps:
        await _write_supersteps(caller, thread, [step.updates for step in fields.supersteps])
        thread = await langgraph_threads.get_thread(caller.database, caller.tenant_id, thread.id)
    return respond_json(await _render(caller, thread))


async def _write_supersteps(
    caller: Caller, thread: LangGraphThreadRow, supersteps: Sequence[Sequence[StateUpdateIn]]
) -> None:
    graph = find_graph(thread, caller.context.graphs)
    if graph is None:
        raise InvalidInput("metadata.graph_id", "it is missing", "Name the graph whose state the supersteps write.")
    updates = [[build_update(one) for one in step] for step in supersteps]
    await langgraph_states.update_state(caller.database, ThreadGraph(caller.tenant_id, thread.id, graph), updates, {})


@router.post("/search")
async def search_threads(caller: CurrentCaller, body: ThreadSearch | None = None) -> Response:
    """List the threads of LangGraph's clients."""
    search = body or ThreadSearch()
    chosen = _filter(search, tuple(search.ids) if search.ids is not None else None)
    matches = await langgraph_threads.list_threads(
        caller.database,
        caller.tenant_id,
        chosen,
        order=search.sort_by or "updated_at",
        descending=search.sort_order != "asc",
        limit=search.limit,
        offset=search.offset,
    )
    total = await langgraph_threads.count_threads(caller.database, caller.tenant_id, chosen)
    page = [await _render(caller, one) for one in matches]
    return respond_page(page, limit=search.limit, offset=search.offset, total=total, select=search.select)


@router.post("/count")
async def count_threads(caller: CurrentCaller, body: ThreadFilterIn | None = None) -> int:
    """Count the threads of LangGraph's clients."""
    return await langgraph_threads.count_threads(
        caller.database, caller.tenant_id, _filter(body or ThreadFilterIn(), None)
    )


@router.get("/{thread_id}")
async def get_thread(caller: CurrentCaller, thread_id: UUID) -> Response:
    """Get a thread with its latest values."""
    thread = await langgraph_threads.get_thread(caller.database, caller.tenant_id, thread_id)
    return respond_json(await _render(caller, thread))


@router.patch("/{thread_id}")
async def update_thread(caller: CurrentCaller, thread_id: UUID, body: ThreadChange) -> Response:
    """Add keys to the metadata of a thread."""
    thread = await langgraph_threads.change_metadata(caller.database, caller.tenant_id, thread_id, body.metadata)
    return respond_json(await _render(caller, thread))


@router.delete("/{thread_id}", status_code=204)
async def delete_thread(caller: CurrentCaller, thread_id: UUID) -> Response:
    """Delete a thread with its runs and states."""
    await langgraph_threads.delete_thread(caller.database, caller.context.notifier, caller.tenant_id, thread_id)
    return Response(status_code=204)


@router.post("/{thread_id}/copy")
async def copy_thread(caller: CurrentCaller, thread_id: UUID) -> Response:
    """Create a thread with the states of another."""
    copied = await langgraph_threads.copy_thread(caller.database, caller.tenant_id, caller.context.graphs, thread_id)
    return respond_json(await _render(caller, copied))


def _filter(fields: ThreadFilterIn, ids: tuple[UUID, ...] | None) -> ThreadFilter:
    if fields.values:
        raise InvalidInput("values", "threads cannot be found by the values of their state", "Use metadata.")
    return ThreadFilter(fields.metadata, fields.status, ids)


async def _render(caller: Caller, thread: LangGraphThreadRow) -> dict[str, object]:
    return render_thread(thread, await load_latest_state(caller, thread))
