"""Runs: submitting, listing, reading, and what people ask of a run."""

from decimal import Decimal
from typing import Annotated, Any, Literal
from uuid import UUID

from fastapi import APIRouter, Header, Query, Response

from offing.api import wire
from offing.api.auth import Caller, Known
from offing.api.parts import Held, Parts
from offing.api.routes.responses import ENDED, NO_RUN, TOO_LARGE, TOO_MANY_STREAMS, problems
from offing.api.routing import StrictRoute
from offing.api.schemas import (
    BudgetIn,
    CancelIn,
    ForkIn,
    MessageIn,
    RunDetail,
    RunIn,
    RunOut,
    RunPage,
    ScopeIn,
    StepOut,
)
from offing.core.model import EngineChoice
from offing.core.run import Budget, RunStatus
from offing.services import forks, runs, views
from offing.services.forks import ForkRequest
from offing.services.runs import RunRequest
from offing.storage.views import RunFilter
from offing.telemetry.tracing import traceparent

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
    request = _request(held, wanted, idempotency_key)
    made = await runs.submit(
        held.database,
        held.hints,
        caller.tenant,
        request,
        graphs=held.graphs,
        default_engine=held.default_engine,
        servers=held.servers,
    )
    response.status_code = 201 if made.new else 200
    response.headers["Location"] = f"/api/v1/runs/{made.run.id}"
    return wire.run_out(made.run)


@router.get("")
async def list_runs(
    caller: Known,
    held: Held,
    status: Annotated[RunStatus | None, Query()] = None,
    graph: Annotated[str | None, Query(max_length=100)] = None,
    thread_id: UUID | None = None,
    q: Annotated[str | None, Query(max_length=200, description="Words of the question.")] = None,
    kind: Annotated[Literal["ask", "rollout"], Query(description="What people asked, or what was collected.")] = "ask",
    cursor: Cursor = None,
    limit: Limit = 50,
) -> RunPage:
    """Runs, newest first."""
    wanted = RunFilter(status, graph, thread_id, q, kind)
    page, following = await views.list_runs(held.database, caller.tenant, wanted, cursor, limit)
    return RunPage(items=[wire.shown_out(run) for run in page], next=following)


@router.get("/{run_id}", responses=NO_RUN)
async def get_run(caller: Known, held: Held, run_id: UUID) -> RunDetail:
    """One run with what it does now and its horizon."""
    return await _detail(held, caller, run_id)


@router.get("/{run_id}/wait", responses=NO_RUN | TOO_MANY_STREAMS)
async def wait_for_run(
    caller: Known,
    held: Held,
    run_id: UUID,
    timeout: Annotated[float, Query(gt=0, le=300, description="Seconds.")] = 30,  # noqa: ASYNC109
) -> RunDetail:
    """The run when it has ended, or as it is when the time is over."""
    with held.streams.one(caller.tenant, caller.name):
        await views.wait_for_end(held.database, held.live, caller.tenant, run_id, timeout)
    return await _detail(held, caller, run_id)


@router.post("/{run_id}/cancel", responses=NO_RUN | ENDED)
async def cancel_run(caller: Known, held: Held, run_id: UUID, wanted: CancelIn | None = None) -> RunOut:
    """End a run: `discard` at once and without a report, `write` with a report of what there is."""
    mode = (wanted or CancelIn()).mode
    return wire.run_out(await runs.cancel(held.database, held.hints, caller.tenant, run_id, mode))


@router.post(
    "/{run_id}/fork",
    status_code=201,
    responses={200: {"model": RunOut, "description": "An earlier request with this key made this run."}}
    | NO_RUN
    | TOO_LARGE
    | problems(_409="The key made another run, or the run's version of its graph is not here."),
)
async def fork_run(
    caller: Known,
    held: Held,
    run_id: UUID,
    response: Response,
    wanted: ForkIn | None = None,
    idempotency_key: IdempotencyKey = None,
) -> RunOut:
    """Go on from a recorded step of a run, in a run of its own: what is on record up to there is not done again."""
    request = _fork_request(run_id, wanted or ForkIn(), idempotency_key)
    made = await forks.fork(held.database, held.hints, caller.tenant, request, graphs=held.graphs, servers=held.servers)
    response.status_code = 201 if made.new else 200
    response.headers["Location"] = f"/api/v1/runs/{made.run.id}"
    return wire.run_out(made.run)


@router.post("/{run_id}/pause", responses=NO_RUN | ENDED)
async def pause_run(caller: Known, held: Held, run_id: UUID) -> RunOut:
    """Hold a run at its next step boundary."""
    return wire.run_out(await runs.pause(held.database, held.hints, caller.tenant, run_id))


@router.post("/{run_id}/resume", responses=NO_RUN | ENDED)
async def resume_run(caller: Known, held: Held, run_id: UUID) -> RunOut:
    """Let a paused run go on."""
    return wire.run_out(await runs.resume(held.database, held.hints, caller.tenant, run_id))


@router.post("/{run_id}/messages", status_code=201, responses=NO_RUN | ENDED | TOO_LARGE)
async def steer_run(caller: Known, held: Held, run_id: UUID, message: MessageIn) -> StepOut:
    """Write to a run while it works; its planner reads the message at the next turn."""
    return wire.step_out(run_id, await runs.steer(held.database, held.hints, caller.tenant, run_id, message.text))


async def _detail(held: Parts, caller: Caller, run_id: UUID) -> RunDetail:
    lease = held.settings.lease_seconds
    return wire.detail_out(await views.run_detail(held.database, held.live, caller.tenant, run_id, lease))


def _budget(limits: BudgetIn) -> Budget:
    usd = None if limits.usd is None else Decimal(str(limits.usd))
    return Budget(limits.turns, limits.tokens, usd, limits.seconds)


def _fork_request(run: UUID, wanted: ForkIn, idempotency_key: str | None) -> ForkRequest:
    return ForkRequest(
        run=run,
        at=wanted.at,
        budget=wanted.budget and _budget(wanted.budget),
        engines=wanted.engines,
        message=wanted.message,
        idempotency_key=idempotency_key,
        traceparent=traceparent(),
    )


def _request(held: Parts, wanted: RunIn, idempotency_key: str | None) -> RunRequest:
    return RunRequest(
        question=wanted.question,
        graph=wanted.graph,
        thread=wanted.thread_id,
        budget=_budget(wanted.budget),
        engines=set_by_operator(held, wanted.graph) | wanted.engines,
        scope=_scope(wanted.scope),
        deadline=wanted.deadline,
        seed=wanted.seed,
        tool_policy=wanted.tool_policy,
        idempotency_key=idempotency_key,
        traceparent=traceparent(),
    )


def _scope(wanted: ScopeIn) -> dict[str, Any]:
    """What is not asked for is left out, so that a request without it is the same as before."""
    seen: dict[str, Any] = {"collections": wanted.collections, "sources": [str(id) for id in wanted.sources]}
    if wanted.code:
        seen["code"] = True
    return seen | ({"web": True} if wanted.web else {}) | ({"mcp": wanted.mcp} if wanted.mcp else {})


def set_by_operator(held: Parts, graph: str) -> dict[str, EngineChoice]:
    """Engines that the installation's settings name for roles of this graph."""
    roles = {role.name for role in held.graphs[graph].roles} if graph in held.graphs else set[str]()
    return {role: choice for role, choice in held.role_engines.items() if role in roles}
