"""Routes for runs that LangGraph's clients made: what they began with and left, and responses to their interrupts."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Path

from offing.api import serializers
from offing.api.auth import CurrentCaller
from offing.api.dependencies import Deps
from offing.api.langgraph import build_context
from offing.api.routes.responses import BODY_TOO_LARGE, describe_problems
from offing.api.schemas.input_requests import InputResponseIn, build_input_response, check_decisions
from offing.api.schemas.langgraph_runs import LangGraphRunOut, serialize_langgraph_run
from offing.api.schemas.runs import RunOut
from offing.api.strict_route import StrictRoute
from offing.core.langgraph_config import HttpSettings
from offing.services import langgraph_run_views, run_summaries

router = APIRouter(prefix="/runs", tags=["runs"], route_class=StrictRoute)


@router.get(
    "/{run_id}/langgraph", responses=describe_problems(_404="There is no such run, or no LangGraph client made it.")
)
async def get_langgraph_run(caller: CurrentCaller, deps: Deps, run_id: UUID) -> LangGraphRunOut:
    """Get what a run of LangGraph's clients began with, the state that it left, and the interrupts that wait."""
    view = await langgraph_run_views.get_view(deps.database, caller.tenant_id, deps.graphs, run_id)
    return serialize_langgraph_run(view)


@router.post(
    "/{run_id}/interrupts/{interrupt_id}/response",
    status_code=201,
    responses=describe_problems(
        _404="There is no such run, or no such interrupt waits.", _409="A run of the thread is active."
    )
    | BODY_TOO_LARGE,
)
async def respond_to_interrupt(
    caller: CurrentCaller,
    deps: Deps,
    run_id: UUID,
    interrupt_id: Annotated[str, Path(max_length=200)],
    body: InputResponseIn,
) -> RunOut:
    """Respond to an interrupt at which a run of LangGraph's clients ended. Returns the run that continues from it."""
    view = await langgraph_run_views.get_view(deps.database, caller.tenant_id, deps.graphs, run_id)
    check_decisions(view.get_interrupt(interrupt_id).prompt, body)
    platform = build_context(deps, HttpSettings()).platform  # headers of this request are not passed to the run
    resumed = await langgraph_run_views.respond_to_interrupt(
        platform, caller.tenant_id, run_id, interrupt_id, build_input_response(body)
    )
    return serializers.serialize_run_summary(
        await run_summaries.get_run_summary(deps.database, caller.tenant_id, resumed.id)
    )
