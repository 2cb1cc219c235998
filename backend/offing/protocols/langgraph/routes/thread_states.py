"""States of a thread: the latest, at a checkpoint, all of them, and a new one."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from fastapi import APIRouter, Query, Response

from offing.core.errors import InvalidInput, NotFound
from offing.protocols.langgraph.bodies import CheckpointIn, CheckpointRead, HistorySearch, StateChange, StateUpdateIn
from offing.protocols.langgraph.context import Caller, CurrentCaller
from offing.protocols.langgraph.rendering import (
    render_checkpoint,
    render_empty_state,
    render_state,
    respond_json,
)
from offing.protocols.langgraph.state_updates import build_update, locate_checkpoint, open_thread
from offing.services import langgraph_states

router = APIRouter(prefix="/threads/{thread_id}")


@router.get("/state")
async def get_state(caller: CurrentCaller, thread_id: UUID, subgraphs: bool = False) -> Response:
    """Get the latest state."""
    return await _respond_state(caller, thread_id, {}, with_subgraphs=subgraphs)


@router.get("/state/{checkpoint_id}")
async def get_state_at(caller: CurrentCaller, thread_id: UUID, checkpoint_id: str, subgraphs: bool = False) -> Response:
    """Get the state at a checkpoint."""
    return await _respond_state(caller, thread_id, {"checkpoint_id": checkpoint_id}, with_subgraphs=subgraphs)


@router.post("/state/checkpoint")
async def get_state_at_checkpoint(caller: CurrentCaller, thread_id: UUID, body: CheckpointRead) -> Response:
    """Get the state at a checkpoint, also of a subgraph."""
    where = locate_checkpoint(body.checkpoint, None)
    return await _respond_state(caller, thread_id, where, with_subgraphs=body.subgraphs)


@router.post("/state")
async def update_state(caller: CurrentCaller, thread_id: UUID, body: StateChange) -> Response:
    """Write a state, as if a node had returned the values."""
    _, thread = await open_thread(caller, thread_id)
    if thread is None:
        raise InvalidInput("thread_id", "the thread has no graph yet", "Create it with graph_id, or run an assistant.")
    several: list[Any] = body.values if isinstance(body.values, list) else [body.values]  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    updates = [build_update(StateUpdateIn(values=values, as_node=body.as_node)) for values in several]
    where = locate_checkpoint(body.checkpoint, body.checkpoint_id)
    written = await langgraph_states.update_state(caller.database, thread, [[one] for one in updates], where)
    return respond_json({"checkpoint": render_checkpoint({"configurable": written}), "configurable": written})


@router.post("/history")
async def search_history(caller: CurrentCaller, thread_id: UUID, body: HistorySearch | None = None) -> Response:
    """List the states, newest first."""
    search = body or HistorySearch()
    where = locate_checkpoint(search.checkpoint, None)
    return await _respond_history(
        caller, thread_id, where, limit=search.limit, before=_parse_before(search.before), metadata=search.metadata
    )


@router.get("/history")
async def get_history(
    caller: CurrentCaller, thread_id: UUID, limit: int = Query(10, ge=1, le=1000), before: str | None = None
) -> Response:
    """List the states, newest first."""
    return await _respond_history(caller, thread_id, {}, limit=limit, before=_parse_before(before), metadata=None)


def _parse_before(before: CheckpointIn | dict[str, Any] | str | None) -> Mapping[str, Any] | None:
    """Return the checkpoint before which a list ends. `None` means that it begins with the latest."""
    match before:
        case None:
            return None
        case str():
            return {"checkpoint_id": before}
        case CheckpointIn():
            return locate_checkpoint(before, None) or None
        case _:
            configurable = before.get("configurable", before)
            if not isinstance(configurable, dict) or not isinstance(configurable.get("checkpoint_id"), str):  # pyright: ignore[reportUnknownMemberType]
                raise InvalidInput("before", "it names no checkpoint_id", "Send the checkpoint of a state.")
            return {"checkpoint_id": configurable["checkpoint_id"]}


async def _respond_state(
    caller: Caller, thread_id: UUID, where: Mapping[str, Any], *, with_subgraphs: bool
) -> Response:
    _, thread = await open_thread(caller, thread_id)
    if thread is None:
        return respond_json(render_empty_state(thread_id))
    state = await langgraph_states.get_state(caller.database, thread, where, with_subgraphs=with_subgraphs)
    if state.metadata is None and where:
        raise NotFound("checkpoint", str(where.get("checkpoint_id")))
    return respond_json(render_state(state) if state.metadata is not None else render_empty_state(thread_id))


async def _respond_history(
    caller: Caller,
    thread_id: UUID,
    where: Mapping[str, Any],
    *,
    limit: int,
    before: Mapping[str, Any] | None,
    metadata: Mapping[str, Any] | None,
) -> Response:
    _, thread = await open_thread(caller, thread_id)
    if thread is None:
        return respond_json([])
    states = await langgraph_states.list_states(
        caller.database, thread, where, limit=limit, before=before, metadata=metadata
    )
    return respond_json([render_state(state) for state in states])
