"""Runs in a thread."""

from typing import Annotated, Literal
from uuid import UUID

from fastapi import APIRouter, Header, Query, Response

from offing.core.errors import Conflict, InvalidInput
from offing.core.run import TERMINAL_STATUSES
from offing.protocols.langgraph.bodies import STREAM_MODES, RunIn
from offing.protocols.langgraph.context import CurrentCaller
from offing.protocols.langgraph.rendering import respond_json
from offing.protocols.langgraph.run_feeds import parse_last_event_id
from offing.protocols.langgraph.run_requests import (
    create_run,
    describe_location,
    respond_result,
    respond_stream,
    stream_new_run,
    wait_for_new_run,
)
from offing.services import langgraph_runs, run_deletion
from offing.services.langgraph_run_json import find_run_status, render_run

router = APIRouter(prefix="/threads/{thread_id}/runs")

LastEventId = Annotated[str | None, Header()]


@router.post("")
async def start_run(caller: CurrentCaller, thread_id: UUID, body: RunIn) -> Response:
    """Create a run in the background."""
    run = await create_run(caller, thread_id, body)
    return respond_json(render_run(run), headers=describe_location(run))


@router.post("/stream")
async def stream_run(caller: CurrentCaller, thread_id: UUID, body: RunIn) -> Response:
    """Create a run and stream its events."""
    return await stream_new_run(caller, thread_id, body)


@router.post("/wait")
async def wait_for_run(caller: CurrentCaller, thread_id: UUID, body: RunIn) -> Response:
    """Create a run and return its result."""
    return await wait_for_new_run(caller, thread_id, body)


@router.get("")
async def list_runs(
    caller: CurrentCaller,
    thread_id: UUID,
    limit: Annotated[int, Query(ge=1, le=1000)] = 10,
    offset: Annotated[int, Query(ge=0, le=2**31 - 1)] = 0,
    status: Literal["pending", "running", "error", "success", "timeout", "interrupted"] | None = None,
    select: Annotated[list[str] | None, Query()] = None,
) -> Response:
    """List the runs of a thread, newest first."""
    if status is None:
        page = await langgraph_runs.list_runs(caller.database, caller.tenant_id, thread_id, limit=limit, offset=offset)
    else:  # it is computed from several columns
        runs = await langgraph_runs.list_runs(caller.database, caller.tenant_id, thread_id)
        page = [run for run in runs if find_run_status(run) == status][offset : offset + limit]
    rendered = [render_run(run) for run in page]
    return respond_json([{k: v for k, v in one.items() if k in select} for one in rendered] if select else rendered)


@router.get("/{run_id}")
async def get_run(caller: CurrentCaller, thread_id: UUID, run_id: UUID) -> Response:
    """Get a run."""
    return respond_json(render_run(await langgraph_runs.get_run(caller.database, caller.tenant_id, thread_id, run_id)))


@router.get("/{run_id}/join")
async def join_run(
    caller: CurrentCaller, thread_id: UUID, run_id: UUID, cancel_on_disconnect: bool = False
) -> Response:
    """Wait for a run, and return its result."""
    run = await langgraph_runs.get_run(caller.database, caller.tenant_id, thread_id, run_id)
    return respond_result(caller, run, cancels=cancel_on_disconnect)


@router.get("/{run_id}/stream")
async def join_stream(
    caller: CurrentCaller,
    thread_id: UUID,
    run_id: UUID,
    stream_mode: Annotated[list[str] | None, Query()] = None,
    cancel_on_disconnect: bool = False,
    last_event_id: LastEventId = None,
) -> Response:
    """Stream the events of a run after `Last-Event-ID`, or those that come from now on."""
    run = await langgraph_runs.get_run(caller.database, caller.tenant_id, thread_id, run_id)
    modes = frozenset(mode for mode in stream_mode or () if mode)  # the Python client sends an empty one for none
    if unknown := sorted(modes - set(STREAM_MODES)):
        raise InvalidInput("stream_mode", f"{unknown[0]!r} is not supported", f"Use any of {', '.join(STREAM_MODES)}.")
    after_id = parse_last_event_id(last_event_id)
    if after_id is None:
        after_id = await caller.context.run_streams.find_last_id(caller.tenant_id, thread_id)
    return respond_stream(caller, run, after_id=after_id, modes=modes or None, cancels=cancel_on_disconnect)


@router.post("/{run_id}/cancel")
async def cancel_run(
    caller: CurrentCaller,
    thread_id: UUID,
    run_id: UUID,
    wait: bool = False,
    action: Literal["interrupt", "rollback"] = "interrupt",
) -> Response:
    """Cancel a run, and with `rollback` delete it with its states."""
    run = await langgraph_runs.get_run(caller.database, caller.tenant_id, thread_id, run_id)
    if action == "rollback" or run.status not in TERMINAL_STATUSES:
        await langgraph_runs.cancel_runs(
            caller.context.platform, caller.tenant_id, [run_id], waits=wait, deletes=action == "rollback"
        )
    return respond_json({}, 200 if wait else 202)


@router.delete("/{run_id}", status_code=204)
async def delete_run(caller: CurrentCaller, thread_id: UUID, run_id: UUID) -> Response:
    """Delete an ended run with the states that it wrote."""
    run = await langgraph_runs.get_run(caller.database, caller.tenant_id, thread_id, run_id)
    if run.status not in TERMINAL_STATUSES:  # before its worker has to wait for the locks of a deletion
        raise Conflict(f"Run {run_id} has not ended.", "Cancel it first, then delete it.")
    await run_deletion.delete_run(caller.database, caller.tenant_id, run_id, keeps_thread=True)
    await caller.context.run_streams.delete(caller.tenant_id, thread_id, run_id)
    return Response(status_code=204)
