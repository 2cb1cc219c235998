"""Routes for what a person watches and steers in a run: its plan, sources, usage, nodes, and a search in its steps."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query

from offing.api.auth import CurrentCaller
from offing.api.dependencies import Deps
from offing.api.routes.responses import BODY_TOO_LARGE, RUN_NOT_FOUND, describe_problems
from offing.api.schemas.run_views import (
    NodeUsageList,
    PlanIn,
    PlanOut,
    RunSourceList,
    StepMatchPage,
    UsageBreakdownOut,
    serialize_matches,
    serialize_node,
    serialize_plan,
    serialize_sources,
    serialize_usage,
)
from offing.api.strict_route import StrictRoute
from offing.services import plan_outlines, run_views

router = APIRouter(prefix="/runs", tags=["runs"], route_class=StrictRoute)


@router.get("/{run_id}/plan", responses=RUN_NOT_FOUND)
async def get_plan(caller: CurrentCaller, deps: Deps, run_id: UUID) -> PlanOut:
    """Get the parts of the question that a run works on, and what became of the latest change of them."""
    return serialize_plan(await plan_outlines.get_plan(deps.database, caller.tenant_id, run_id, deps.graphs))


@router.put(
    "/{run_id}/plan",
    responses=RUN_NOT_FOUND
    | BODY_TOO_LARGE
    | describe_problems(
        _409="The plan is no longer that of `version`, the run has ended, it is a rollout, or its graph has no plan "
        "that can be changed."
    ),
)
async def change_plan(caller: CurrentCaller, deps: Deps, run_id: UUID, body: PlanIn) -> PlanOut:
    """Change the plan of an active run. The change is recorded as a user message, and read in the run's next turn."""
    plan = await plan_outlines.change_plan(
        deps.database, deps.notifier, caller.tenant_id, run_id, body.list_items(), body.version, deps.graphs
    )
    return serialize_plan(plan)


@router.get("/{run_id}/step-matches", responses=RUN_NOT_FOUND)
async def search_steps(
    caller: CurrentCaller,
    deps: Deps,
    run_id: UUID,
    q: Annotated[
        str,
        Query(max_length=200, description="Text that a step shows or records, in any letter case. Empty: every step."),
    ] = "",
    node: Annotated[
        str | None, Query(max_length=200, description="Only steps that this node of the graph recorded.")
    ] = None,
    after: Annotated[int, Query(ge=0, le=2**62, description="Return only steps after this seq.")] = 0,
    limit: Annotated[int, Query(ge=1, le=1000)] = 200,
) -> StepMatchPage:
    """Search in the steps of a run. Prompts are not searched. `next` is the `after` of the next page."""
    page = await run_views.search_steps(deps.database, caller.tenant_id, run_id, q.strip(), node, after, limit)
    return serialize_matches(page)


@router.get("/{run_id}/nodes", responses=RUN_NOT_FOUND)
async def list_nodes(caller: CurrentCaller, deps: Deps, run_id: UUID) -> NodeUsageList:
    """List the nodes of a run's graph with their visits, durations, tokens and costs."""
    nodes = await run_views.list_nodes(deps.database, caller.tenant_id, run_id)
    return NodeUsageList(items=[serialize_node(node) for node in nodes])


@router.get("/{run_id}/usage", responses=RUN_NOT_FOUND)
async def get_usage(caller: CurrentCaller, deps: Deps, run_id: UUID) -> UsageBreakdownOut:
    """Get the tokens and the cost of a run's role calls by role and model, and over its turns."""
    return serialize_usage(await run_views.get_usage(deps.database, caller.tenant_id, run_id))


@router.get("/{run_id}/sources", responses=RUN_NOT_FOUND)
async def list_run_sources(caller: CurrentCaller, deps: Deps, run_id: UUID) -> RunSourceList:
    """List the sources that a run has met, with what came of each."""
    return serialize_sources(await run_views.find_run_sources(deps.database, caller.tenant_id, run_id))
