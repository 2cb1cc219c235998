"""Runs without a thread, several at once, and cancelling several."""

from typing import Annotated, Literal

from fastapi import APIRouter, Body, Response

from offing.core.errors import InvalidInput
from offing.core.run import TERMINAL_STATUSES
from offing.protocols.langgraph.access import check_thread
from offing.protocols.langgraph.bodies import CancelMany, RunIn
from offing.protocols.langgraph.context import CurrentCaller
from offing.protocols.langgraph.rendering import respond_json
from offing.protocols.langgraph.run_requests import create_run, describe_location, stream_new_run, wait_for_new_run
from offing.services import langgraph_runs
from offing.services.langgraph_run_json import find_run_status, render_run

router = APIRouter(prefix="/runs")


@router.post("")
async def start_run(caller: CurrentCaller, body: RunIn) -> Response:
    """Create a run in a thread of its own."""
    run = await create_run(caller, None, body)
    return respond_json(render_run(run), headers=describe_location(run))


@router.post("/stream")
async def stream_run(caller: CurrentCaller, body: RunIn) -> Response:
    """Create a run in a thread of its own, and stream its events."""
    return await stream_new_run(caller, None, body)


@router.post("/wait")
async def wait_for_run(caller: CurrentCaller, body: RunIn) -> Response:
    """Create a run in a thread of its own, and return its result."""
    return await wait_for_new_run(caller, None, body)


@router.post("/batch")
async def start_runs(caller: CurrentCaller, body: Annotated[list[RunIn], Body(max_length=100)]) -> Response:
    """Create several runs, each in a thread of its own."""
    return respond_json([render_run(await create_run(caller, None, one)) for one in body])


@router.post("/cancel", status_code=204)
async def cancel_runs(
    caller: CurrentCaller, body: CancelMany, action: Literal["interrupt", "rollback"] = "interrupt"
) -> Response:
    """Cancel runs of a thread: those that are named, or those of a status."""
    if body.thread_id is None:
        raise InvalidInput("thread_id", "it is missing", "Name the thread whose runs to cancel.")
    await check_thread(caller, body.thread_id, "update")
    matches = await langgraph_runs.list_runs(caller.database, caller.tenant_id, body.thread_id)
    active = [run for run in matches if run.status not in TERMINAL_STATUSES]
    if body.run_ids is not None:
        active = [run for run in active if run.id in body.run_ids]
    if body.status in ("pending", "running"):
        active = [run for run in active if find_run_status(run) == body.status]
    await langgraph_runs.cancel_runs(
        caller.context.platform, caller.tenant_id, [run.id for run in active], waits=False, deletes=action == "rollback"
    )
    return Response(status_code=204)
