"""Routes for collecting rollouts: rollout batches, rollout groups and rollouts."""

import asyncio
from decimal import Decimal
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query, Response

from offing.api.auth import Caller, CurrentCaller
from offing.api.dependencies import AppDependencies, Deps
from offing.api.routes.responses import BODY_TOO_LARGE, describe_problems
from offing.api.routes.runs import IdempotencyKey, operator_engines
from offing.api.schemas.rollouts import (
    GroupState,
    RolloutBatchIn,
    RolloutBatchOut,
    RolloutBatchPage,
    RolloutDetail,
    RolloutGroupDetail,
    RolloutGroupPage,
    RolloutPage,
    TaskSelectionIn,
    serialize_batch,
    serialize_group,
    serialize_group_detail,
    serialize_rollout,
    serialize_rollout_detail,
)
from offing.api.strict_route import StrictRoute
from offing.core.errors import InvalidInput
from offing.core.judge_budget import JudgeBudget
from offing.core.model import EngineConfig
from offing.core.run import Budget
from offing.core.trajectory import Outcome
from offing.services import rollouts, tasks
from offing.services.rollouts import BatchRequest, ScorerSpec
from offing.storage.rollout_batches import GroupFilter
from offing.storage.rollouts import RolloutFilter
from offing.telemetry.tracing import current_traceparent
from offing.tools.environment import TaskSample, qualify_spec

router = APIRouter(tags=["collection"], route_class=StrictRoute)

Cursor = Annotated[UUID | None, Query(description="`next` of the previous page.")]

Limit = Annotated[int, Query(ge=1, le=200)]

Graph = Annotated[str | None, Query(max_length=100)]

BATCH_NOT_FOUND = describe_problems(_404="There is no such batch.")


@router.post(
    "/rollout-batches",
    status_code=201,
    responses={200: {"model": RolloutBatchOut, "description": "An earlier request with this key created this batch."}}
    | BODY_TOO_LARGE
    | describe_problems(_404="There is no such task.", _409="The key was used for another batch."),
)
async def create_rollout_batch(
    caller: CurrentCaller, deps: Deps, body: RolloutBatchIn, response: Response, idempotency_key: IdempotencyKey = None
) -> RolloutBatchOut:
    """Collect rollouts.

    The response is sent when all groups are stored; workers start with the first ones before that.
    """
    batch = await rollouts.create_batch(
        deps.database,
        deps.notifier,
        caller.tenant_id,
        await _build_request(deps, caller, body, idempotency_key),
        graphs=deps.graphs,
        default_engine=deps.default_engine,
        slice_max_turns=deps.settings.slice_max_turns,
        servers=deps.mcp_servers,
    )
    response.status_code = 201 if batch.is_new else 200
    response.headers["Location"] = f"/api/v1/rollout-batches/{batch.batch.id}"
    return serialize_batch(await rollouts.get_batch(deps.database, caller.tenant_id, batch.batch.id))


@router.get("/rollout-batches")
async def list_rollout_batches(
    caller: CurrentCaller, deps: Deps, cursor: Cursor = None, limit: Limit = 50
) -> RolloutBatchPage:
    """List rollout batches with their progress, newest first."""
    page, following = await rollouts.list_batches(deps.database, caller.tenant_id, cursor, limit)
    return RolloutBatchPage(items=[serialize_batch(batch) for batch in page], next=following and str(following))


@router.get("/rollout-batches/{batch_id}", responses=BATCH_NOT_FOUND)
async def get_rollout_batch(caller: CurrentCaller, deps: Deps, batch_id: UUID) -> RolloutBatchOut:
    """Get a rollout batch with its progress."""
    return serialize_batch(await rollouts.get_batch(deps.database, caller.tenant_id, batch_id))


@router.post("/rollout-batches/{batch_id}/cancel", responses=BATCH_NOT_FOUND)
async def cancel_rollout_batch(caller: CurrentCaller, deps: Deps, batch_id: UUID) -> RolloutBatchOut:
    """Cancel all runs of a rollout batch. Rollouts that are finalized are kept."""
    return serialize_batch(await rollouts.cancel_batch(deps.database, deps.notifier, caller.tenant_id, batch_id))


@router.get("/rollout-groups", responses=BATCH_NOT_FOUND)
async def list_rollout_groups(
    caller: CurrentCaller,
    deps: Deps,
    batch_id: UUID | None = None,
    state: Annotated[GroupState | None, Query()] = None,
    graph: Graph = None,
    cursor: Cursor = None,
    limit: Limit = 50,
) -> RolloutGroupPage:
    """List rollout groups, newest first."""
    group_filter = GroupFilter(batch_id, state, graph)
    page, following = await rollouts.list_groups(deps.database, caller.tenant_id, group_filter, cursor, limit)
    return RolloutGroupPage(items=[serialize_group(group) for group in page], next=following and str(following))


@router.get("/rollout-groups/{group_id}", responses=describe_problems(_404="There is no such group."))
async def get_rollout_group(caller: CurrentCaller, deps: Deps, group_id: UUID) -> RolloutGroupDetail:
    """Get a rollout group with every attempt of its members and their scores."""
    return serialize_group_detail(await rollouts.get_group(deps.database, caller.tenant_id, group_id))


@router.get("/rollouts", responses=BATCH_NOT_FOUND)
async def list_rollouts(
    caller: CurrentCaller,
    deps: Deps,
    batch_id: UUID | None = None,
    outcome: Annotated[Outcome | None, Query()] = None,
    finalized: bool | None = None,
    graph: Graph = None,
    cursor: Cursor = None,
    limit: Limit = 50,
) -> RolloutPage:
    """List rollouts, newest first."""
    rollout_filter = RolloutFilter(batch_id, outcome, finalized, graph)
    page, following = await rollouts.list_rollouts(deps.database, caller.tenant_id, rollout_filter, cursor, limit)
    return RolloutPage(items=[serialize_rollout(rollout) for rollout in page], next=following and str(following))


@router.get("/rollouts/{run_id}", responses=describe_problems(_404="There is no such rollout."))
async def get_rollout(caller: CurrentCaller, deps: Deps, run_id: UUID) -> RolloutDetail:
    """Get a rollout with its scores."""
    return serialize_rollout_detail(await rollouts.get_rollout(deps.database, caller.tenant_id, run_id))


async def _build_request(
    deps: AppDependencies, caller: Caller, body: RolloutBatchIn, idempotency_key: str | None
) -> BatchRequest:
    limits = body.budget
    usd = None if limits.max_cost_usd is None else Decimal(str(limits.max_cost_usd))
    engines = _merge_engines(deps, body)
    scorers = None if body.scorers is None else [ScorerSpec(s.name, s.weight, s.options) for s in body.scorers]
    return BatchRequest(
        graph=body.graph,
        task_ids=await _select_task_ids(deps, caller.tenant_id, body.tasks, body.name or "inline"),
        group_size=body.group_size,
        engines=engines,
        scorers=scorers,
        budget=Budget(limits.max_turns, limits.max_tokens, usd, limits.max_seconds, limits.depth),
        judge_budget=JudgeBudget(body.judge_budget.max_calls, body.judge_budget.max_cost_usd),
        durability=body.durability,
        attempts=body.max_attempts,
        seed=body.seed,
        tags=body.tags,
        name=body.name,
        idempotency_key=idempotency_key,
        traceparent=current_traceparent(),
    )


def _merge_engines(deps: AppDependencies, body: RolloutBatchIn) -> dict[str, EngineConfig]:
    for role in body.engines:
        if role in body.policies:
            raise InvalidInput(
                f"policies.{role}", "the role also has an engine in `engines`", "Set only one of the two."
            )
    policies = {role: EngineConfig(engine="policy", model=name) for role, name in body.policies.items()}
    return operator_engines(deps, body.graph) | body.engines | policies


async def _select_task_ids(
    deps: AppDependencies, tenant_id: UUID, selection: TaskSelectionIn, inline_dataset: str
) -> list[UUID]:
    if selection.task_ids is not None:
        return selection.task_ids
    if selection.dataset is not None:
        return await tasks.list_dataset_task_ids(deps.database, tenant_id, selection.dataset, selection.max_tasks)
    if selection.environment is not None:
        requested = selection.environment
        kinds = None if requested.kinds is None else tuple(requested.kinds)
        drawn = TaskSample(
            requested.spec, requested.task_count, requested.hops, kinds, requested.seed, requested.compositions
        )
        specs = await asyncio.to_thread(tasks.sample_tasks, drawn)
        return (await tasks.store_tasks(deps.database, tenant_id, qualify_spec(requested.spec), specs)).task_ids
    items = selection.items or []
    return (await tasks.store_tasks(deps.database, tenant_id, inline_dataset, items, deps.mcp_servers)).task_ids
