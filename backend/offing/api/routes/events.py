"""Steps and the streams of them."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Header, Query, Response

from offing.api.auth import Known
from offing.api.parts import Held
from offing.api.routes.responses import EVENTS, NO_RUN, problems
from offing.api.schemas import StepDetail, StepPage
from offing.api.strict import StrictRoute
from offing.core.step import StepKind

router = APIRouter(tags=["steps"], route_class=StrictRoute)

Seq = Annotated[int, Query(ge=0, le=2**62)]

LastEventId = Annotated[str | None, Header(max_length=4000, description="`id:` of the last event that arrived.")]


@router.get("/runs/{run_id}/steps", responses=NO_RUN)
async def list_steps(
    caller: Known,
    held: Held,
    run_id: UUID,
    after: Annotated[int, Query(ge=0, le=2**62, description="Steps after this seq.")] = 0,
    limit: Annotated[int, Query(ge=1, le=1000)] = 200,
    kind: StepKind | None = None,
) -> StepPage:
    """Steps in order, without their payloads. `next` is the `after` of the next page."""
    raise NotImplementedError


@router.get("/runs/{run_id}/steps/{seq}", responses=problems(_404="There is no such run or step."))
async def get_step(caller: Known, held: Held, run_id: UUID, seq: int) -> StepDetail:
    """One step, whole."""
    raise NotImplementedError


@router.get("/runs/{run_id}/events", response_class=Response, responses=NO_RUN | EVENTS)
async def follow_run(
    caller: Known,
    held: Held,
    run_id: UUID,
    after: Annotated[int, Query(ge=0, le=2**62, description="Steps after this seq; Last-Event-ID overrules it.")] = 0,
    last_event_id: LastEventId = None,
) -> Response:
    """Server-sent events of one run.

    `step` events carry a StepOut and are durable: each comes once, in order, with its seq as `id:`. `run` (RunDetail)
    and `live` (LiveOut or null) tell the state and have no id. After the run's last step comes `end`, and the server
    closes. A comment every 15 s keeps the connection open.
    """
    raise NotImplementedError


@router.get("/events", response_class=Response, responses=NO_RUN | EVENTS)
async def follow_runs(
    caller: Known,
    held: Held,
    cursor: Annotated[
        str,
        Query(
            max_length=4000,
            examples=["01980000-0000-7000-8000-000000000001:0"],
            description="`<run>:<seq>,<run>:<seq>`: steps after each seq. At most 50 runs.",
        ),
    ],
    last_event_id: LastEventId = None,
) -> Response:
    """Server-sent events of several runs on one connection.

    As for one run, but `id:` is the whole updated cursor, every data object names its `run_id`, and live events are
    `{run_id, live}`. The server closes when all of them have ended.
    """
    raise NotImplementedError
