"""Collecting rollouts: batches of groups, their progress, their groups and rollouts."""

import asyncio
from decimal import Decimal
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query, Response

from offing.api.auth import Caller, Known
from offing.api.collecting import (
    BatchIn,
    BatchOut,
    BatchPage,
    GroupDetail,
    GroupPage,
    GroupState,
    RolloutDetail,
    RolloutPage,
    TaskChoice,
    batch_out,
    group_detail,
    group_out,
    rollout_detail,
    rollout_out,
)
from offing.api.parts import Held, Parts
from offing.api.routes.responses import TOO_LARGE, problems
from offing.api.routes.runs import IdempotencyKey, set_by_operator
from offing.api.routing import StrictRoute
from offing.core.errors import InvalidInput
from offing.core.model import EngineChoice
from offing.core.run import Budget
from offing.core.trajectory import Outcome
from offing.services import rollouts, tasks
from offing.services.rollouts import BatchRequest, ScorerSpec
from offing.storage.groups import GroupFilter
from offing.storage.rollouts import RolloutFilter
from offing.telemetry.tracing import traceparent

router = APIRouter(tags=["collection"], route_class=StrictRoute)

Cursor = Annotated[UUID | None, Query(description="`next` of the page before.")]

Limit = Annotated[int, Query(ge=1, le=200)]

Graph = Annotated[str | None, Query(max_length=100)]

NO_BATCH = problems(_404="There is no such batch.")


@router.post(
    "/batches",
    status_code=201,
    responses={200: {"model": BatchOut, "description": "An earlier request with this key made this batch."}}
    | TOO_LARGE
    | problems(_404="There is no such task.", _409="The key made another batch."),
)
async def create_batch(
    caller: Known, held: Held, wanted: BatchIn, response: Response, idempotency_key: IdempotencyKey = None
) -> BatchOut:
    """Collect rollouts. Answers when all groups are stored; workers begin with the first ones before that."""
    made = await rollouts.create(
        held.database,
        held.hints,
        caller.tenant,
        await _request(held, caller, wanted, idempotency_key),
        graphs=held.graphs,
        default_engine=held.default_engine,
        slice_turns=held.settings.slice_turns,
    )
    response.status_code = 201 if made.new else 200
    response.headers["Location"] = f"/api/v1/batches/{made.batch.id}"
    return batch_out(await rollouts.one_batch(held.database, caller.tenant, made.batch.id))


@router.get("/batches")
async def list_batches(caller: Known, held: Held, cursor: Cursor = None, limit: Limit = 50) -> BatchPage:
    """Batches with their progress, newest first."""
    page, following = await rollouts.batches(held.database, caller.tenant, cursor, limit)
    return BatchPage(items=[batch_out(batch) for batch in page], next=following and str(following))


@router.get("/batches/{batch_id}", responses=NO_BATCH)
async def get_batch(caller: Known, held: Held, batch_id: UUID) -> BatchOut:
    """One batch and how far it is."""
    return batch_out(await rollouts.one_batch(held.database, caller.tenant, batch_id))


@router.post("/batches/{batch_id}/cancel", responses=NO_BATCH)
async def cancel_batch(caller: Known, held: Held, batch_id: UUID) -> BatchOut:
    """End all of its runs; what was settled stays."""
    return batch_out(await rollouts.cancel(held.database, held.hints, caller.tenant, batch_id))


@router.get("/groups", responses=NO_BATCH)
async def list_groups(
    caller: Known,
    held: Held,
    batch_id: UUID | None = None,
    state: Annotated[GroupState | None, Query()] = None,
    graph: Graph = None,
    cursor: Cursor = None,
    limit: Limit = 50,
) -> GroupPage:
    """Groups, newest first."""
    wanted = GroupFilter(batch_id, state, graph)
    page, following = await rollouts.list_groups(held.database, caller.tenant, wanted, cursor, limit)
    return GroupPage(items=[group_out(group) for group in page], next=following and str(following))


@router.get("/groups/{group_id}", responses=problems(_404="There is no such group."))
async def get_group(caller: Known, held: Held, group_id: UUID) -> GroupDetail:
    """One group with every attempt of its members, and what scorers found."""
    return group_detail(await rollouts.one_group(held.database, caller.tenant, group_id))


@router.get("/rollouts", responses=NO_BATCH)
async def list_rollouts(
    caller: Known,
    held: Held,
    batch_id: UUID | None = None,
    outcome: Annotated[Outcome | None, Query()] = None,
    settled: bool | None = None,
    graph: Graph = None,
    cursor: Cursor = None,
    limit: Limit = 50,
) -> RolloutPage:
    """Rollouts, newest first."""
    wanted = RolloutFilter(batch_id, outcome, settled, graph)
    page, following = await rollouts.list_rollouts(held.database, caller.tenant, wanted, cursor, limit)
    return RolloutPage(items=[rollout_out(rollout) for rollout in page], next=following and str(following))


@router.get("/rollouts/{run_id}", responses=problems(_404="There is no such rollout."))
async def get_rollout(caller: Known, held: Held, run_id: UUID) -> RolloutDetail:
    """One rollout with what scorers found."""
    return rollout_detail(await rollouts.one_rollout(held.database, caller.tenant, run_id))


async def _request(held: Parts, caller: Caller, wanted: BatchIn, key: str | None) -> BatchRequest:
    limits = wanted.budget
    usd = None if limits.usd is None else Decimal(str(limits.usd))
    engines = _engines(held, wanted)
    scorers = None if wanted.scorers is None else [ScorerSpec(s.name, s.weight, s.options) for s in wanted.scorers]
    return BatchRequest(
        graph=wanted.graph,
        tasks=await _tasks(held, caller.tenant, wanted.tasks, wanted.name or "inline"),
        group_size=wanted.group_size,
        engines=engines,
        scorers=scorers,
        budget=Budget(limits.turns, limits.tokens, usd, limits.seconds),
        durability=wanted.durability,
        attempts=wanted.attempts,
        seed=wanted.seed,
        tags=wanted.tags,
        name=wanted.name,
        idempotency_key=key,
        traceparent=traceparent(),
    )


def _engines(held: Parts, wanted: BatchIn) -> dict[str, EngineChoice]:
    for role in wanted.engines:
        if role in wanted.policies:
            raise InvalidInput(f"policies.{role}", "this role has an engine, too", "Name one of them.")
    policies = {role: EngineChoice(engine="policy", model=name) for role, name in wanted.policies.items()}
    return set_by_operator(held, wanted.graph) | wanted.engines | policies


async def _tasks(held: Parts, tenant: UUID, chosen: TaskChoice, inline: str) -> list[UUID]:
    if chosen.ids is not None:
        return chosen.ids
    if chosen.dataset is not None:
        return await tasks.of_dataset(held.database, tenant, chosen.dataset, chosen.count)
    if chosen.world is not None:
        world = chosen.world
        kinds = None if world.kinds is None else tuple(world.kinds)
        drawn = tasks.Drawn(world.spec, world.count, world.hops, kinds, world.seed)
        specs = await asyncio.to_thread(tasks.of_world, drawn)
        return (await tasks.store(held.database, tenant, f"world:{world.spec}", specs)).ids
    return (await tasks.store(held.database, tenant, inline, chosen.items or [])).ids
