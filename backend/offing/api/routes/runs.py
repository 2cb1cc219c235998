"""Runs: submitting, listing, reading, and what people ask of a run."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Header, Query, Response

from offing.api.auth import Known
from offing.api.parts import Held
from offing.api.routes.responses import ENDED, NO_RUN, TOO_LARGE, problems
from offing.api.schemas import CancelIn, MessageIn, RunDetail, RunIn, RunOut, RunPage, StepOut
from offing.api.strict import StrictRoute
from offing.core.run import RunStatus

router = APIRouter(prefix="/runs", tags=["runs"], route_class=StrictRoute)

IdempotencyKey = Annotated[
    str | None,
    Header(min_length=1, max_length=200, pattern=r"^[\x20-\x7e]+$", description="Makes a repeat harmless."),
]

Limit = Annotated[int, Query(ge=1, le=200)]

Cursor = Annotated[str | None, Query(max_length=200, description="`next` of the page before.")]


@router.post(
    "",
    status_code=201,
    responses={200: {"model": RunOut, "description": "An earlier request with this key made this run."}}
    | TOO_LARGE
    | problems(_404="There is no such graph or thread.", _409="The key made another run, or the thread is busy."),
)
async def create_run(
    caller: Known, held: Held, wanted: RunIn, response: Response, idempotency_key: IdempotencyKey = None
) -> RunOut:
    """Submit a question. Answers as soon as the run is stored; follow it with its events."""
    raise NotImplementedError


@router.get("")
async def list_runs(
    caller: Known,
    held: Held,
    status: Annotated[RunStatus | None, Query()] = None,
    graph: Annotated[str | None, Query(max_length=100)] = None,
    thread_id: UUID | None = None,
    q: Annotated[str | None, Query(max_length=200, description="Words of the question.")] = None,
    cursor: Cursor = None,
    limit: Limit = 50,
) -> RunPage:
    """Runs, newest first."""
    raise NotImplementedError


@router.get("/{run_id}", responses=NO_RUN)
async def get_run(caller: Known, held: Held, run_id: UUID) -> RunDetail:
    """One run with what it does now and its horizon."""
    raise NotImplementedError


@router.get("/{run_id}/wait", responses=NO_RUN)
async def wait_for_run(
    caller: Known,
    held: Held,
    run_id: UUID,
    timeout: Annotated[float, Query(gt=0, le=300, description="Seconds.")] = 30,  # noqa: ASYNC109
) -> RunDetail:
    """The run when it has ended, or as it is when the time is over."""
    raise NotImplementedError


@router.post("/{run_id}/cancel", responses=NO_RUN | ENDED)
async def cancel_run(caller: Known, held: Held, run_id: UUID, wanted: CancelIn | None = None) -> RunOut:
    """End a run: `discard` at once and without a report, `write` with a report of what there is."""
    raise NotImplementedError


@router.post("/{run_id}/pause", responses=NO_RUN | ENDED)
async def pause_run(caller: Known, held: Held, run_id: UUID) -> RunOut:
    """Hold a run at its next step boundary."""
    raise NotImplementedError


@router.post("/{run_id}/resume", responses=NO_RUN | ENDED)
async def resume_run(caller: Known, held: Held, run_id: UUID) -> RunOut:
    """Let a paused run go on."""
    raise NotImplementedError


@router.post("/{run_id}/messages", status_code=201, responses=NO_RUN | ENDED | TOO_LARGE)
async def steer_run(caller: Known, held: Held, run_id: UUID, message: MessageIn) -> StepOut:
    """Write to a run while it works; its planner reads the message at the next turn."""
    raise NotImplementedError
