"""Threads: created, found, changed, copied and deleted."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Annotated, Any, Literal
from uuid import UUID

import orjson
from fastapi import APIRouter, Header, Query, Response

from offing.core.errors import Conflict, InvalidInput, NotFound
from offing.core.langgraph_config import ThreadTtl
from offing.core.metadata_filter import matches_filter
from offing.kernel.langgraph_json import dump_json
from offing.protocols.langgraph.access import allow, build_containment, check_thread
from offing.protocols.langgraph.bodies import (
    StateUpdateIn,
    ThreadChange,
    ThreadFilterIn,
    ThreadIn,
    ThreadPruning,
    ThreadSearch,
    ThreadTtlIn,
)
from offing.protocols.langgraph.context import Caller, CurrentCaller
from offing.protocols.langgraph.rendering import render_thread, render_ttl, respond_json, respond_page
from offing.protocols.langgraph.state_updates import build_update, load_latest_state
from offing.protocols.langgraph.thread_views import check_paths, contains, needs_state, view_thread
from offing.services import langgraph_states, langgraph_threads
from offing.services.langgraph_states import ThreadGraph
from offing.services.langgraph_threads import NewThread, find_graph
from offing.storage.langgraph_threads import LangGraphThreadRow, ThreadFilter

router = APIRouter(prefix="/threads")

MAX_STATES_READ = 1000
"""Maximum number of threads whose states one search by values reads."""


@router.post("")
async def create_thread(caller: CurrentCaller, body: ThreadIn | None = None) -> Response:
    """Create a thread, with states if `supersteps` has some."""
    fields = body or ThreadIn()
    ttl = _read_ttl(fields.ttl) or caller.context.thread_ttl
    value: dict[str, Any] = {
        "thread_id": fields.thread_id,
        "metadata": dict(fields.metadata),
        "if_exists": fields.if_exists,
    }
    conditions = await allow(caller, "threads", "create", value)
    new = NewThread(fields.thread_id, value["metadata"], keeps_existing=fields.if_exists == "do_nothing", ttl=ttl)
    thread = await langgraph_threads.create_thread(caller.database, caller.tenant_id, new)
    if not matches_filter(conditions, thread.metadata):  # an existing one of another user
        raise Conflict(f"There is a thread {thread.id}.", "Use another id.")
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
    extract = search.extract or {}
    check_paths(extract)
    order, descending = search.sort_by or "updated_at", search.sort_order != "asc"
    chosen = await _filter(caller, search, tuple(search.ids) if search.ids is not None else None)
    if search.values:
        matches = await _find_by_values(caller, chosen, search.values, order, descending=descending)
        total, matches = len(matches), matches[search.offset : search.offset + search.limit]
    else:
        matches = await langgraph_threads.list_threads(
            caller.database,
            caller.tenant_id,
            chosen,
            order=order,
            descending=descending,
            limit=search.limit,
            offset=search.offset,
        )
        total = await langgraph_threads.count_threads(caller.database, caller.tenant_id, chosen)
    with_state = needs_state(search.select, extract)
    page = [await _render(caller, one) if with_state else render_thread(one, None) for one in matches]
    views = [view_thread(one, search.select, extract) for one in page]
    return respond_page(views, limit=search.limit, offset=search.offset, total=total)


@router.post("/count")
async def count_threads(caller: CurrentCaller, body: ThreadFilterIn | None = None) -> int:
    """Count the threads of LangGraph's clients."""
    search = body or ThreadFilterIn()
    chosen = await _filter(caller, search, None)
    if search.values:
        return len(await _find_by_values(caller, chosen, search.values, "updated_at", descending=True))
    return await langgraph_threads.count_threads(caller.database, caller.tenant_id, chosen)


@router.post("/prune")
async def prune_threads(caller: CurrentCaller, body: ThreadPruning) -> Response:
    """Delete threads with their runs, or all their states but the latest."""
    allowed: list[UUID] = []
    for thread_id in body.thread_ids:
        with suppress(NotFound):
            await check_thread(caller, thread_id, "delete")
            allowed.append(thread_id)
    count = await langgraph_threads.prune_threads(
        caller.database, caller.context.notifier, caller.context.bus, caller.tenant_id, allowed, body.strategy
    )
    return respond_json({"pruned_count": count})


@router.get("/{thread_id}")
async def get_thread(
    caller: CurrentCaller, thread_id: UUID, include: Annotated[list[Literal["ttl"]] | None, Query()] = None
) -> Response:
    """Get a thread with its latest values."""
    thread = await langgraph_threads.get_thread(caller.database, caller.tenant_id, thread_id)
    expiry = {"ttl": render_ttl(thread)} if include else {}
    return respond_json({**await _render(caller, thread), **expiry})


@router.patch("/{thread_id}")
async def update_thread(
    caller: CurrentCaller, thread_id: UUID, body: ThreadChange, prefer: Annotated[str | None, Header()] = None
) -> Response:
    """Add keys to the metadata of a thread, and set when it expires."""
    value: dict[str, Any] = {"thread_id": thread_id, "metadata": dict(body.metadata)}
    await check_thread(caller, thread_id, "update", value)
    thread = await langgraph_threads.change_thread(
        caller.database, caller.tenant_id, thread_id, value["metadata"], _read_ttl(body.ttl)
    )
    if prefer == "return=minimal":
        return Response(status_code=204)
    return respond_json(await _render(caller, thread))


@router.delete("/{thread_id}", status_code=204)
async def delete_thread(caller: CurrentCaller, thread_id: UUID) -> Response:
    """Delete a thread with its runs and states. Active runs are cancelled first."""
    context = caller.context
    await langgraph_threads.delete_thread(caller.database, context.notifier, context.bus, caller.tenant_id, thread_id)
    return Response(status_code=204)


@router.post("/{thread_id}/copy")
async def copy_thread(caller: CurrentCaller, thread_id: UUID) -> Response:
    """Create a thread with the states of another."""
    await check_thread(caller, thread_id, "read")
    source = await langgraph_threads.get_thread(caller.database, caller.tenant_id, thread_id)
    value: dict[str, Any] = {"thread_id": None, "metadata": dict(source.metadata)}
    await allow(caller, "threads", "create", value)
    copied = await langgraph_threads.copy_thread(caller.database, caller.tenant_id, caller.context.graphs, thread_id)
    if value["metadata"] != source.metadata:
        copied = await langgraph_threads.change_thread(caller.database, caller.tenant_id, copied.id, value["metadata"])
    return respond_json(await _render(caller, copied))


async def _filter(caller: Caller, fields: ThreadFilterIn, ids: tuple[UUID, ...] | None) -> ThreadFilter:
    value: dict[str, Any] = {
        "metadata": dict(fields.metadata),
        "values": fields.values,
        "status": fields.status,
        "ids": ids,
    }
    conditions = await allow(caller, "threads", "search", value)
    return ThreadFilter(value["metadata"], fields.status, ids, build_containment(conditions))


async def _find_by_values(
    caller: Caller, chosen: ThreadFilter, values: Mapping[str, Any], order: str, *, descending: bool
) -> list[LangGraphThreadRow]:
    """Return the threads whose latest state contains these values. Raises InvalidInput if too many are to be read."""
    candidates = await langgraph_threads.list_threads(
        caller.database,
        caller.tenant_id,
        chosen,
        order=order,
        descending=descending,
        limit=MAX_STATES_READ + 1,
        offset=0,
    )
    if len(candidates) > MAX_STATES_READ:
        problem = f"more than {MAX_STATES_READ} threads match the other criteria, whose states would be read"
        raise InvalidInput("values", problem, "Narrow them by metadata, status or ids.")
    matches: list[LangGraphThreadRow] = []
    for one in candidates:
        state = await load_latest_state(caller, one)
        if state is not None and contains(orjson.loads(dump_json(state.values)), values):
            matches.append(one)
    return matches


def _read_ttl(ttl: ThreadTtlIn | float | None) -> ThreadTtl | None:
    if isinstance(ttl, ThreadTtlIn):
        return ThreadTtl(ttl.ttl, ttl.strategy)
    return None if ttl is None else ThreadTtl(ttl)


async def _render(caller: Caller, thread: LangGraphThreadRow) -> dict[str, object]:
    return render_thread(thread, await load_latest_state(caller, thread))
