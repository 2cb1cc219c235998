"""Routes for runs: submit, list, read and control them."""

from collections.abc import Mapping
from dataclasses import asdict
from decimal import Decimal
from typing import Annotated, Any, Literal, TypedDict
from uuid import UUID

from fastapi import APIRouter, Header, Query, Response

from offing.api import serializers
from offing.api.auth import Caller, CurrentCaller
from offing.api.dependencies import AppDependencies, Deps
from offing.api.routes.responses import (
    BODY_TOO_LARGE,
    RUN_NOT_FOUND,
    RUN_STATE_CONFLICT,
    TOO_MANY_STREAMS,
    describe_problems,
)
from offing.api.schemas.run_requests import BudgetIn, CancelIn, CreationTime, ForkIn, RunIn, ScopeIn, UserMessageIn
from offing.api.schemas.run_tree import RunTreeOut, serialize_run_tree
from offing.api.schemas.runs import RunChangeIn, RunCountsOut, RunDeletionOut, RunDetail, RunOut, RunPage
from offing.api.schemas.steps import StepOut
from offing.api.strict_route import StrictRoute
from offing.core.model import EngineConfig
from offing.core.run import Budget, RunStatus
from offing.mcp.server_registry import McpServerRegistry
from offing.models.preset_table import Preset
from offing.sdk import Graph
from offing.services import child_runs, forks, presets, run_deletion, run_labels, run_lists, run_summaries, runs
from offing.services.engine_configs import choose_preset_engines
from offing.services.follow_ups import FollowUpRequest
from offing.services.forks import ForkRequest
from offing.services.offline_runs import find_remote_library_model
from offing.services.run_labels import LabelChange
from offing.services.run_lists import MAX_MINIMAPS, MAX_PINNED_FIRST, ListForm, RunOrder
from offing.services.runs import RunRequest
from offing.storage.run_filter import RunFilter, StatusGroup
from offing.storage.run_summaries import RunSummary
from offing.telemetry.tracing import current_traceparent

router = APIRouter(prefix="/runs", tags=["runs"], route_class=StrictRoute)

IdempotencyKey = Annotated[
    str | None,
    Header(
        min_length=1,
        max_length=200,
        pattern=r"^[\x20-\x7e]+$",
        description="Repeating a request with the same key has no further effect.",
    ),
]

Limit = Annotated[int, Query(ge=1, le=200)]

Cursor = Annotated[str | None, Query(max_length=200, description="`next` of the previous page.")]


@router.post(
    "",
    status_code=201,
    responses={200: {"model": RunOut, "description": "An earlier request with this key created this run."}}
    | BODY_TOO_LARGE
    | describe_problems(
        _404="There is no such graph or thread.",
        _409="The key was used for another run, or the thread already has an active run.",
    ),
)
async def create_run(
    caller: CurrentCaller, deps: Deps, body: RunIn, response: Response, idempotency_key: IdempotencyKey = None
) -> RunOut:
    """Submit a question. The response is sent as soon as the run is stored; follow the run with its events."""
    submitted = await _submit_run(deps, caller.tenant_id, body, idempotency_key)
    response.status_code = 201 if submitted.is_new else 200
    response.headers["Location"] = f"/api/v1/runs/{submitted.run.id}"
    if submitted.opens_thread:
        return serializers.serialize_run_summary(RunSummary(submitted.run, title=None, lease_until=None))
    return await _load_summary(deps, caller, submitted.run.id)


@router.get("")
async def list_runs(
    caller: CurrentCaller,
    deps: Deps,
    status: Annotated[RunStatus | None, Query()] = None,
    status_group: Annotated[
        StatusGroup | None,
        Query(description="active: queued, running, waiting or paused. ended: done, failed or cancelled."),
    ] = None,
    waiting_for_person: Annotated[
        bool, Query(description="true: only runs that wait for a person, at an input request or an interrupt.")
    ] = False,
    graph: Annotated[str | None, Query(max_length=100)] = None,
    thread_id: UUID | None = None,
    tag: Annotated[str | None, Query(max_length=200)] = None,
    pinned: bool | None = None,
    archived: Annotated[Literal["no", "only", "any"], Query(description="Whether to list archived runs.")] = "no",
    created_from: Annotated[CreationTime | None, Query(description="Earliest time of creation, inclusive.")] = None,
    created_before: Annotated[CreationTime | None, Query(description="End of the time of creation, exclusive.")] = None,
    cites: Annotated[UUID | None, Query(description="Only runs with a report that cites this source.")] = None,
    q: Annotated[
        str | None,
        Query(
            max_length=200,
            description="Words that all occur in the question, the given title, the tags or the latest report, in any "
            "form: connecting finds connection. The last word may be incomplete.",
        ),
    ] = None,
    kind: Annotated[
        Literal["interactive", "rollout"], Query(description="Runs that a person started, or rollouts.")
    ] = "interactive",
    minimap: Annotated[
        bool,
        Query(description=f"true: with the step minimap of each run. `limit` may then be at most {MAX_MINIMAPS}."),
    ] = False,
    order: Annotated[
        RunOrder | None,
        Query(
            description="best: with `q`, the best match first. cost and duration: the most first, of runs that have "
            "ended. Default: best with `q`, else newest."
        ),
    ] = None,
    pinned_first: Annotated[
        int,
        Query(
            ge=0,
            le=MAX_PINNED_FIRST,
            description="Number of pinned runs that stand before the others, in `pinned` of the first page. `items` "
            "then has only runs that are not pinned. 0: pinned runs stand among the others.",
        ),
    ] = 0,
    latest_of_thread: Annotated[
        bool, Query(description="true: only the latest run of each thread, which stands for the thread.")
    ] = False,
    cursor: Annotated[str | None, Query(max_length=500, description="`next` of the previous page.")] = None,
    limit: Limit = 50,
) -> RunPage:
    """List runs, newest first, or with `q` the best match first.

    A page of a search or of a list by cost or duration may be shorter than `limit` and not be the last.
    """
    run_filter = RunFilter(
        status=status,
        graph=graph,
        thread_id=thread_id,
        kind=kind,
        status_group=status_group,
        waiting_for_person=waiting_for_person,
        tag=tag,
        pinned=pinned,
        archived={"no": False, "only": True, "any": None}[archived],
        created_from=created_from,
        created_before=created_before,
        cites=cites,
        latest_of_thread=latest_of_thread,
    )
    words = q if q and q.strip() else None  # space after the last word means that it is complete
    form = ListForm(order, minimap, pinned_first)
    listed = await run_lists.list_runs(deps.database, caller.tenant_id, run_filter, words, cursor, limit, form)
    return serializers.serialize_run_list(listed)


@router.get("/counts")
async def count_runs(caller: CurrentCaller, deps: Deps) -> RunCountsOut:
    """Count the runs that wait for a person, are active, failed, pinned or archived, up to 100 each.

    Archived runs are counted only as archived.
    """
    return RunCountsOut.model_validate(asdict(await run_lists.count_runs(deps.database, caller.tenant_id)))


@router.get("/{run_id}", responses=RUN_NOT_FOUND)
async def get_run(caller: CurrentCaller, deps: Deps, run_id: UUID) -> RunDetail:
    """Get a run with its current action and its step marks."""
    return await _load_detail(deps, caller, run_id)


@router.patch(
    "/{run_id}",
    responses=RUN_NOT_FOUND | BODY_TOO_LARGE | describe_problems(_409="The run is a rollout or a child run."),
)
async def change_run(caller: CurrentCaller, deps: Deps, run_id: UUID, body: RunChangeIn) -> RunOut:
    """Give a run a title and tags, pin it, or archive it."""
    change = LabelChange(body.title, body.tags, body.pinned, body.archived)
    return serializers.serialize_run_summary(
        await run_labels.change_labels(deps.database, deps.bus, caller.tenant_id, run_id, change)
    )


@router.delete(
    "/{run_id}",
    responses=RUN_NOT_FOUND
    | describe_problems(
        _409="The run, a run that it started, or a fork of it is active; a later run of its thread would remain; or "
        "it is a rollout or a child run."
    ),
)
async def delete_run(
    caller: CurrentCaller,
    deps: Deps,
    run_id: UUID,
    later_runs: Annotated[
        bool, Query(description="true: also delete the later runs of its thread, which build on it.")
    ] = False,
) -> RunDeletionOut:
    """Delete an ended run permanently with its steps, report, ratings, files, states and the runs that it started.

    Documents that it fetched, items in LangGraph's store, forks, and what training has made of it stay.
    """
    result = await run_deletion.delete_run(deps.database, caller.tenant_id, run_id, with_later_runs=later_runs)
    return serializers.serialize_deletion(result)


@router.get("/{run_id}/wait", responses=RUN_NOT_FOUND | TOO_MANY_STREAMS)
async def wait_for_run(
    caller: CurrentCaller,
    deps: Deps,
    run_id: UUID,
    timeout: Annotated[float, Query(gt=0, le=300, description="Seconds.")] = 30,  # noqa: ASYNC109
) -> RunDetail:
    """Wait for a run to end. Returns the run when it has ended or when the timeout has passed."""
    with deps.stream_limits.open_stream(caller.tenant_id, caller.name):
        await run_summaries.wait_for_end(deps.database, deps.bus, caller.tenant_id, run_id, timeout)
    return await _load_detail(deps, caller, run_id)


@router.post("/{run_id}/cancel", responses=RUN_NOT_FOUND | RUN_STATE_CONFLICT)
async def cancel_run(caller: CurrentCaller, deps: Deps, run_id: UUID, body: CancelIn | None = None) -> RunOut:
    """Cancel a run.

    `discard` ends it at once without a report; `finish` ends it with a report from the evidence so far.
    """
    mode = (body or CancelIn()).mode
    await runs.cancel_run(deps.database, deps.notifier, caller.tenant_id, run_id, mode)
    return await _load_summary(deps, caller, run_id)


@router.post(
    "/{run_id}/fork",
    status_code=201,
    responses={200: {"model": RunOut, "description": "An earlier request with this key created this run."}}
    | RUN_NOT_FOUND
    | BODY_TOO_LARGE
    | describe_problems(_409="The key was used for another run, or the run's version of its graph is not installed."),
)
async def fork_run(
    caller: CurrentCaller,
    deps: Deps,
    run_id: UUID,
    response: Response,
    body: ForkIn | None = None,
    idempotency_key: IdempotencyKey = None,
) -> RunOut:
    """Fork a run: create a run that continues from a recorded step of this run.

    Steps up to there are not repeated.
    """
    request = _build_fork_request(run_id, body or ForkIn(), idempotency_key)
    forked = await forks.fork_run(
        deps.database, deps.notifier, caller.tenant_id, request, graphs=deps.graphs, servers=deps.mcp_servers
    )
    response.status_code = 201 if forked.is_new else 200
    response.headers["Location"] = f"/api/v1/runs/{forked.run.id}"
    return await _load_summary(deps, caller, forked.run.id)


@router.post("/{run_id}/pause", responses=RUN_NOT_FOUND | RUN_STATE_CONFLICT)
async def pause_run(caller: CurrentCaller, deps: Deps, run_id: UUID) -> RunOut:
    """Pause a run at its next step boundary."""
    await runs.pause_run(deps.database, deps.notifier, caller.tenant_id, run_id)
    return await _load_summary(deps, caller, run_id)


@router.post("/{run_id}/resume", responses=RUN_NOT_FOUND | RUN_STATE_CONFLICT)
async def resume_run(caller: CurrentCaller, deps: Deps, run_id: UUID) -> RunOut:
    """Resume a paused run."""
    await runs.resume_run(deps.database, deps.notifier, caller.tenant_id, run_id)
    return await _load_summary(deps, caller, run_id)


@router.post("/{run_id}/messages", status_code=201, responses=RUN_NOT_FOUND | RUN_STATE_CONFLICT | BODY_TOO_LARGE)
async def send_user_message(caller: CurrentCaller, deps: Deps, run_id: UUID, message: UserMessageIn) -> StepOut:
    """Send a user message to a running run. Its planner reads the message when the next turn begins.

    The graphs of Offing then record a step with the label `message read`, whose payload has the steps of the messages.
    """
    return serializers.serialize_step(
        run_id, await runs.send_user_message(deps.database, deps.notifier, caller.tenant_id, run_id, message.text)
    )


async def _load_summary(deps: AppDependencies, caller: Caller, run_id: UUID) -> RunOut:
    """Return the run with its title, tags, pin and archive."""
    return serializers.serialize_run_summary(
        await run_summaries.get_run_summary(deps.database, caller.tenant_id, run_id)
    )


async def _load_detail(deps: AppDependencies, caller: Caller, run_id: UUID) -> RunDetail:
    lease = deps.settings.lease_seconds
    return serializers.serialize_run_detail(
        await run_summaries.get_run_detail(deps.database, deps.bus, caller.tenant_id, run_id, lease)
    )


async def _submit_run(
    deps: AppDependencies, tenant_id: UUID, body: RunIn, idempotency_key: str | None
) -> runs.SubmittedRun:
    """Submit a question with the preset that it names, or the default one of a new question without engines."""

    async def submit(preset: Preset | None) -> runs.SubmittedRun:
        return await runs.submit_run(
            deps.database, deps.notifier, tenant_id, _build_request(deps, body, idempotency_key, preset), **options
        )

    options: _SubmitOptions = {
        "graphs": deps.graphs,
        "default_engine": deps.default_engine,
        "servers": deps.mcp_servers,
    }
    if body.preset:
        return await submit(await presets.get_preset(deps.database, tenant_id, body.preset))
    if body.engines or body.thread_id is not None or body.follow_up is not None:
        return await submit(None)
    request = _build_request(deps, body, idempotency_key, None)
    submitted = await runs.submit_run_without_preset(deps.database, deps.notifier, tenant_id, request, **options)
    return submitted or await submit(await presets.find_default_preset(deps.database, tenant_id))


class _SubmitOptions(TypedDict):
    graphs: Mapping[str, Graph]
    default_engine: EngineConfig
    servers: McpServerRegistry


def _build_budget(limits: BudgetIn) -> Budget:
    usd = None if limits.max_cost_usd is None else Decimal(str(limits.max_cost_usd))
    return Budget(limits.max_turns, limits.max_tokens, usd, limits.max_seconds, limits.depth)


def _build_fork_request(run_id: UUID, body: ForkIn, idempotency_key: str | None) -> ForkRequest:
    return ForkRequest(
        run_id=run_id,
        at_seq=body.at_seq,
        budget=body.budget and _build_budget(body.budget),
        engines=body.engines,
        message=body.message,
        idempotency_key=idempotency_key,
        traceparent=current_traceparent(),
    )


def _build_request(
    deps: AppDependencies, body: RunIn, idempotency_key: str | None, preset: Preset | None
) -> RunRequest:
    engines, budget = dict[str, EngineConfig](), body.budget
    if preset is not None:
        graph = deps.graphs.get(body.graph)
        engines = choose_preset_engines(preset, graph) if graph else {}
        budget = BudgetIn.model_validate({**preset.budget, **budget.model_dump(exclude_unset=True)})
    return RunRequest(
        question=body.question,
        graph=body.graph,
        thread_id=body.thread_id,
        budget=_build_budget(budget),
        engines={**engines, **body.engines},
        scope=_build_scope(body.scope),
        named_scope=SWITCHES & body.scope.model_fields_set,
        default_engines=operator_engines(deps, body.graph),
        follow_up=body.follow_up and FollowUpRequest(body.follow_up.kind, body.follow_up.run_id),
        deadline=body.deadline,
        seed=body.seed,
        tool_policy=body.tool_policy,
        report_style=body.report_style,
        interactions=frozenset(body.interactions),
        remote_library_model=find_remote_library_model(deps.settings),
        idempotency_key=idempotency_key,
        traceparent=current_traceparent(),
    )


SWITCHES = frozenset({"web", "code", "mcp", "only_domains", "excluded_domains", "offline"})
"""Entries of a scope that a follow-up can switch off by naming them. Empty collections and sources name nothing."""


def _build_scope(scope: ScopeIn) -> dict[str, Any]:
    """Return the scope to store.

    Options that are off are left out, so that the digest of an unchanged request stays the same.
    """
    fields: dict[str, Any] = {"collections": scope.collections, "sources": [str(id) for id in scope.sources]}
    options = {name: getattr(scope, name) for name in sorted(SWITCHES)}
    return fields | {name: value for name, value in options.items() if value}


def operator_engines(deps: AppDependencies, graph: str) -> dict[str, EngineConfig]:
    """Return the engines that the settings of the installation name for roles of this graph."""
    named = deps.graphs[graph].list_askable_roles(deps.role_engines) if graph in deps.graphs else ()
    return {role.name: deps.role_engines[role.name] for role in named if role.name in deps.role_engines}


@router.get("/{run_id}/tree", responses=RUN_NOT_FOUND)
async def get_run_tree(caller: CurrentCaller, deps: Deps, run_id: UUID) -> RunTreeOut:
    """Get the runs that a run has started, and the run that started it."""
    return serialize_run_tree(await child_runs.get_run_tree(deps.database, caller.tenant_id, run_id))
