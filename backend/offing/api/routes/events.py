"""Routes for steps and event streams."""

from contextlib import AbstractContextManager
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Header, Path, Query, Response

from offing.api import serializers, streams
from offing.api.auth import Caller, CurrentCaller
from offing.api.dependencies import AppDependencies, Deps
from offing.api.feed import RunEventFeed
from offing.api.routes.responses import EVENT_STREAM_RESPONSES, RUN_NOT_FOUND, TOO_MANY_STREAMS, describe_problems
from offing.api.schemas.runs import AnswerDraftList
from offing.api.schemas.steps import FullStepPage, StepDetail, StepPage
from offing.api.strict_route import StrictRoute
from offing.core.step import StepKind
from offing.services import run_summaries

router = APIRouter(tags=["steps"], route_class=StrictRoute)

LastEventId = Annotated[str | None, Header(max_length=4000, description="`id:` of the last received event.")]


@router.get("/runs/{run_id}/steps", responses=RUN_NOT_FOUND)
async def list_steps(
    caller: CurrentCaller,
    deps: Deps,
    run_id: UUID,
    after: Annotated[int, Query(ge=0, le=2**62, description="Return only steps after this seq.")] = 0,
    limit: Annotated[int, Query(ge=1, le=1000)] = 200,
    kind: StepKind | None = None,
) -> StepPage:
    """List steps in order, without their payloads. `next` is the `after` of the next page."""
    page, following = await run_summaries.list_steps(deps.database, caller.tenant_id, run_id, after, limit, kind)
    return StepPage(
        items=[serializers.serialize_step(run_id, s) for s in page], next=None if following is None else str(following)
    )


@router.get("/runs/{run_id}/whole-steps", responses=RUN_NOT_FOUND)
async def list_full_steps(
    caller: CurrentCaller,
    deps: Deps,
    run_id: UUID,
    kind: Annotated[
        list[StepKind],
        Query(min_length=1, max_length=8, description="Kinds of steps. Repeat the parameter for several kinds."),
    ],
    after: Annotated[int, Query(ge=0, le=2**62, description="Return only steps after this seq.")] = 0,
    limit: Annotated[int, Query(ge=1, le=200)] = 100,
) -> FullStepPage:
    """List steps of some kinds in order, with their payloads. `next` is the `after` of the next page."""
    page, following = await run_summaries.list_full_steps(deps.database, caller.tenant_id, run_id, kind, after, limit)
    items = [serializers.serialize_step_detail(run_id, step) for step in page]
    return FullStepPage(items=items, next=None if following is None else str(following))


@router.get("/runs/{run_id}/steps/{seq}", responses=describe_problems(_404="There is no such run or step."))
async def get_step(
    caller: CurrentCaller, deps: Deps, run_id: UUID, seq: Annotated[int, Path(ge=0, le=2**62)]
) -> StepDetail:
    """Get a step with its payload."""
    return serializers.serialize_step_detail(
        run_id, await run_summaries.get_step(deps.database, caller.tenant_id, run_id, seq)
    )


@router.get("/runs/{run_id}/drafts", responses=RUN_NOT_FOUND)
async def list_drafts(caller: CurrentCaller, deps: Deps, run_id: UUID) -> AnswerDraftList:
    """List the answers that models are writing for the run, each with its text so far.

    They are not durable, not checked, and replaced by the steps of the answers. The list is empty if there are none
    or if Redis is unavailable.
    """
    drafts = await run_summaries.list_drafts(deps.database, deps.bus, caller.tenant_id, run_id)
    return AnswerDraftList(items=[serializers.serialize_draft(run_id, part) for part in drafts])


@router.get(
    "/runs/{run_id}/events",
    response_class=Response,
    responses=RUN_NOT_FOUND | TOO_MANY_STREAMS | EVENT_STREAM_RESPONSES,
)
async def follow_run(
    caller: CurrentCaller,
    deps: Deps,
    run_id: UUID,
    after: Annotated[
        int, Query(ge=0, le=2**62, description="Send only steps after this seq. Last-Event-ID takes precedence.")
    ] = 0,
    last_event_id: LastEventId = None,
) -> Response:
    """Stream the events of one run as server-sent events.

    `step` events carry a StepOut and are durable: each is sent once, in order, with its seq as `id:`. `run`
    (RunDetail) and `live` (LiveStatusOut or null) events carry the current state and have no id. `draft`
    (AnswerDraftOut) events carry text of an answer while a model writes it, and `draft_end` (`{run_id, call_id}`)
    withdraws it: its step was recorded, or its attempt was lost. After the last step of the run comes an `end` event,
    and the server closes the stream. A comment every 15 seconds keeps the connection open.
    """
    feed = _open_feed(deps, caller, {run_id: streams.parse_last_event_id(last_event_id, after)})
    return await streams.open_event_stream(feed, _count_stream(deps, caller))


@router.get("/events", response_class=Response, responses=RUN_NOT_FOUND | TOO_MANY_STREAMS | EVENT_STREAM_RESPONSES)
async def follow_runs(
    caller: CurrentCaller,
    deps: Deps,
    cursor: Annotated[
        str,
        Query(
            max_length=4000,
            examples=["01980000-0000-7000-8000-000000000001:0"],
            description="`<run>:<seq>,<run>:<seq>`: send only steps after each seq. At most 50 runs.",
        ),
    ],
    last_event_id: LastEventId = None,
) -> Response:
    """Stream the events of several runs on one connection as server-sent events.

    The events are those of a single run, but `id:` is the complete updated cursor, every data object names its
    `run_id`, and live events are `{run_id, live}`. The server closes the stream when all runs have ended.
    """
    positions = streams.parse_cursor(last_event_id, "Last-Event-ID") if last_event_id else streams.parse_cursor(cursor)
    return await streams.open_event_stream(_open_feed(deps, caller, positions), _count_stream(deps, caller), positions)


def _count_stream(deps: AppDependencies, caller: Caller) -> AbstractContextManager[None]:
    return deps.stream_limits.open_stream(caller.tenant_id, caller.name)


def _open_feed(deps: AppDependencies, caller: Caller, positions: dict[UUID, int]) -> RunEventFeed:
    return RunEventFeed(
        deps.database,
        deps.bus,
        deps.run_reads,
        caller.tenant_id,
        positions,
        reauthenticate=caller.reauthenticate,
    )
