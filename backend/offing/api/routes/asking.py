"""Routes for a person who is about to ask: statistics of past runs, and saved ways to ask."""

from uuid import UUID

from fastapi import APIRouter, Response

from offing.api.auth import CurrentCaller
from offing.api.dependencies import Deps
from offing.api.routes.responses import BODY_TOO_LARGE, describe_problems
from offing.api.schemas.asking import (
    QuestionPresetChangeIn,
    QuestionPresetIn,
    QuestionPresetList,
    QuestionPresetOut,
    RunStatisticsList,
    dump_settings,
    serialize_question_preset,
    serialize_run_statistics,
)
from offing.api.strict_route import StrictRoute
from offing.services import question_presets, run_statistics

router = APIRouter(tags=["asking"], route_class=StrictRoute)

PRESET_NOT_FOUND = describe_problems(_404="There is no such question preset.")
PRESET_CONFLICT = describe_problems(_409="Another question preset has this name, or there are 100.")


@router.get("/run-statistics")
async def list_run_statistics(caller: CurrentCaller, deps: Deps) -> RunStatisticsList:
    """List what the turns of your tenant's ended runs took and cost, by graph, and by graph and models."""
    rows = await run_statistics.list_run_statistics(deps.database, caller.tenant_id, sorted(deps.graphs))
    return RunStatisticsList(items=[serialize_run_statistics(row) for row in rows])


@router.get("/question-presets")
async def list_question_presets(caller: CurrentCaller, deps: Deps) -> QuestionPresetList:
    """List your tenant's saved ways to ask, by name."""
    rows = await question_presets.list_question_presets(deps.database, caller.tenant_id)
    return QuestionPresetList(items=[serialize_question_preset(row) for row in rows])


@router.post("/question-presets", status_code=201, responses=BODY_TOO_LARGE | PRESET_CONFLICT)
async def create_question_preset(caller: CurrentCaller, deps: Deps, body: QuestionPresetIn) -> QuestionPresetOut:
    """Save a way to ask under a name. Its engines, collections and servers are checked when a run is submitted."""
    row = await question_presets.create_question_preset(
        deps.database, caller.tenant_id, body.name, dump_settings(body.settings)
    )
    return serialize_question_preset(row)


@router.patch("/question-presets/{preset_id}", responses=BODY_TOO_LARGE | PRESET_NOT_FOUND | PRESET_CONFLICT)
async def change_question_preset(
    caller: CurrentCaller, deps: Deps, preset_id: UUID, body: QuestionPresetChangeIn
) -> QuestionPresetOut:
    """Rename a question preset, or replace its settings."""
    settings = None if body.settings is None else dump_settings(body.settings)
    row = await question_presets.change_question_preset(deps.database, caller.tenant_id, preset_id, body.name, settings)
    return serialize_question_preset(row)


@router.delete("/question-presets/{preset_id}", status_code=204, responses=PRESET_NOT_FOUND)
async def delete_question_preset(caller: CurrentCaller, deps: Deps, preset_id: UUID) -> Response:
    """Delete a question preset. Runs that were asked with it are unchanged."""
    await question_presets.delete_question_preset(deps.database, caller.tenant_id, preset_id)
    return Response(status_code=204)
