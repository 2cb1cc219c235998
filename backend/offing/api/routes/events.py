"""Steps and the streams of them."""

from contextlib import AbstractContextManager
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Header, Path, Query, Response

from offing.api import streams, wire
from offing.api.auth import Caller, Known
from offing.api.feed import Feed
from offing.api.parts import Held, Parts
from offing.api.routes.responses import EVENTS, NO_RUN, TOO_MANY_STREAMS, problems
from offing.api.routing import StrictRoute
from offing.api.schemas import StepDetail, StepPage, WholeStepPage
from offing.core.step import StepKind
from offing.services import views

router = APIRouter(tags=["steps"], route_class=StrictRoute)

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
    page, following = await views.step_lines(held.database, caller.tenant, run_id, after, limit, kind)
    return StepPage(items=[wire.step_out(run_id, s) for s in page], next=None if following is None else str(following))


@router.get("/runs/{run_id}/whole-steps", responses=NO_RUN)
async def list_whole_steps(
    caller: Known,
    held: Held,
    run_id: UUID,
    kind: Annotated[list[StepKind], Query(min_length=1, max_length=8, description="Kinds of steps; repeat for more.")],
    after: Annotated[int, Query(ge=0, le=2**62, description="Steps after this seq.")] = 0,
    limit: Annotated[int, Query(ge=1, le=200)] = 100,
) -> WholeStepPage:
    """Steps of some kinds in order, with their payloads. `next` is the `after` of the next page."""
    page, following = await views.whole_steps(held.database, caller.tenant, run_id, kind, after, limit)
    items = [wire.step_detail(run_id, step) for step in page]
    return WholeStepPage(items=items, next=None if following is None else str(following))


@router.get("/runs/{run_id}/steps/{seq}", responses=problems(_404="There is no such run or step."))
async def get_step(caller: Known, held: Held, run_id: UUID, seq: Annotated[int, Path(ge=0, le=2**62)]) -> StepDetail:
    """One step, whole."""
    return wire.step_detail(run_id, await views.step(held.database, caller.tenant, run_id, seq))


@router.get("/runs/{run_id}/events", response_class=Response, responses=NO_RUN | TOO_MANY_STREAMS | EVENTS)
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
    feed = _feed(held, caller, {run_id: streams.seq_of(last_event_id, after)})
    return await streams.opened(feed, _counted(held, caller))


@router.get("/events", response_class=Response, responses=NO_RUN | TOO_MANY_STREAMS | EVENTS)
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
    places = streams.places_of(last_event_id, "Last-Event-ID") if last_event_id else streams.places_of(cursor)
    return await streams.opened(_feed(held, caller, places), _counted(held, caller), places)


def _counted(held: Parts, caller: Caller) -> AbstractContextManager[None]:
    return held.streams.one(caller.tenant, caller.name)


def _feed(held: Parts, caller: Caller, after: dict[UUID, int]) -> Feed:
    return Feed(
        held.database,
        held.live,
        caller.tenant,
        after,
        lease_seconds=held.settings.lease_seconds,
        still_allowed=caller.again,
    )
