"""Routes for what people said about a run, for whether it may be learned from, and for making tasks from runs."""

from uuid import UUID

from fastapi import APIRouter

from offing.api.auth import CurrentCaller
from offing.api.dependencies import Deps
from offing.api.routes.responses import BODY_TOO_LARGE, describe_problems
from offing.api.schemas.training_signals import (
    AnswerCorrectionIn,
    TaskSetOut,
    TasksFromRunsIn,
    TrainingConsentIn,
    TrainingConsentOut,
    TrainingSignalOut,
    TrainingSignalsOut,
    serialize_consent,
    serialize_signal,
    serialize_task_set,
)
from offing.api.strict_route import StrictRoute
from offing.services import run_tasks, training_signals

router = APIRouter(tags=["collection"], route_class=StrictRoute)

RUN_NOT_FOUND = describe_problems(_404="There is no such run.")
NOT_OF_A_PERSON = describe_problems(_404="There is no such run.", _409="No person started the run.")


@router.get("/runs/{run_id}/training-signals", responses=RUN_NOT_FOUND)
async def list_training_signals(caller: CurrentCaller, deps: Deps, run_id: UUID) -> TrainingSignalsOut:
    """List what people said about a run, oldest first, and whether it may be learned from."""
    signals = await training_signals.list_signals(deps.database, caller.tenant_id, run_id)
    consent = await training_signals.get_consent(deps.database, caller.tenant_id, run_id)
    return TrainingSignalsOut(consent=serialize_consent(consent), items=[serialize_signal(one) for one in signals])


@router.post("/runs/{run_id}/answer-corrections", status_code=201, responses=NOT_OF_A_PERSON | BODY_TOO_LARGE)
async def correct_answer(
    caller: CurrentCaller, deps: Deps, run_id: UUID, body: AnswerCorrectionIn
) -> TrainingSignalOut:
    """Say what the right answer of a run is. The report is not changed."""
    return serialize_signal(
        await training_signals.correct_answer(
            deps.database, caller.tenant_id, run_id, body.answer, person=caller.name, text_origin=body.text_origin
        )
    )


@router.put("/runs/{run_id}/training-consent", responses=NOT_OF_A_PERSON | BODY_TOO_LARGE)
async def set_training_consent(
    caller: CurrentCaller, deps: Deps, run_id: UUID, body: TrainingConsentIn
) -> TrainingConsentOut:
    """Decide whether a run may be learned from. Sets of tasks that are made later follow the decision."""
    return serialize_consent(
        await training_signals.set_consent(deps.database, caller.tenant_id, run_id, body.is_allowed, person=caller.name)
    )


@router.post("/tasks/from-runs", responses=BODY_TOO_LARGE)
async def make_tasks_from_runs(caller: CurrentCaller, deps: Deps, body: TasksFromRunsIn) -> TaskSetOut:
    """Make tasks from rated and corrected runs: to train on, and held out, without overlap."""
    request = body.build_request()
    task_set = await run_tasks.make_tasks_from_runs(
        deps.database, caller.tenant_id, request, person=caller.name, is_dry_run=body.is_dry_run
    )
    return serialize_task_set(request, task_set)
