"""Routes for training jobs: create, list, watch, pause, resume and cancel them.

`offing trainer` runs the jobs.
"""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query, Response

from offing.api.auth import CurrentCaller
from offing.api.dependencies import Deps
from offing.api.routes.responses import BODY_TOO_LARGE, describe_problems
from offing.api.schemas.training_jobs import (
    TrainingEventList,
    TrainingJobDetail,
    TrainingJobIn,
    TrainingJobOut,
    TrainingJobPage,
    TrainingJobState,
    TrainingMetricList,
    serialize_events,
    serialize_job,
    serialize_job_detail,
    serialize_job_list_item,
    serialize_metrics,
)
from offing.api.strict_route import StrictRoute
from offing.services import training_jobs

router = APIRouter(prefix="/training-jobs", tags=["training"], route_class=StrictRoute)

JOB_NOT_FOUND = describe_problems(_404="There is no such training job.")

JOB_ENDED = describe_problems(_409="The job has ended.")


@router.post("", status_code=201, responses=BODY_TOO_LARGE)
async def create_training_job(
    caller: CurrentCaller, deps: Deps, body: TrainingJobIn, response: Response
) -> TrainingJobOut:
    """Queue a training job.

    Its pipeline is checked when the job starts; an invalid pipeline fails the job with the reason.
    """
    job = await training_jobs.create_job(deps.database, caller.tenant_id, body.config)
    response.headers["Location"] = f"/api/v1/training-jobs/{job.id}"
    return serialize_job(job)


@router.get("")
async def list_training_jobs(
    caller: CurrentCaller,
    deps: Deps,
    state: TrainingJobState | None = None,
    cursor: Annotated[UUID | None, Query(description="`next` of the previous page.")] = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> TrainingJobPage:
    """List training jobs, newest first."""
    page, following = await training_jobs.list_jobs(deps.database, caller.tenant_id, state, cursor, limit)
    rewards = await training_jobs.get_last_rewards(deps.database, caller.tenant_id, [job.id for job in page])
    return TrainingJobPage(
        items=[serialize_job_list_item(job, rewards.get(job.id)) for job in page], next=following and str(following)
    )


@router.get("/{job_id}", responses=JOB_NOT_FOUND)
async def get_training_job(caller: CurrentCaller, deps: Deps, job_id: UUID) -> TrainingJobDetail:
    """Get a training job with the ledger reasons of its rollouts."""
    return serialize_job_detail(await training_jobs.get_job(deps.database, caller.tenant_id, job_id))


@router.get("/{job_id}/metrics", responses=JOB_NOT_FOUND)
async def list_training_metrics(
    caller: CurrentCaller,
    deps: Deps,
    job_id: UUID,
    after: Annotated[int, Query(ge=0, le=2**31 - 1, description="Return only metrics of later steps.")] = 0,
    name: Annotated[list[str] | None, Query(max_length=50, description="Return only metrics with these names.")] = None,
    limit: Annotated[int, Query(ge=1, le=20_000)] = 5_000,
) -> TrainingMetricList:
    """List metrics in order of training steps.

    Steps are complete unless a single step has more than `limit` metrics.
    """
    return serialize_metrics(
        await training_jobs.list_metrics(deps.database, caller.tenant_id, job_id, after, name, limit)
    )


@router.get("/{job_id}/events", responses=JOB_NOT_FOUND)
async def list_training_events(
    caller: CurrentCaller,
    deps: Deps,
    job_id: UUID,
    after: Annotated[UUID | None, Query(description="Return only events after this one.")] = None,
    limit: Annotated[int, Query(ge=1, le=1_000)] = 200,
) -> TrainingEventList:
    """List the decisions about a training job and their results, in order."""
    return serialize_events(await training_jobs.list_events(deps.database, caller.tenant_id, job_id, after, limit))


@router.post("/{job_id}/cancel", responses=JOB_NOT_FOUND | JOB_ENDED)
async def cancel_training_job(caller: CurrentCaller, deps: Deps, job_id: UUID) -> TrainingJobOut:
    """Cancel a training job after its current training step. Committed steps are kept."""
    return serialize_job(await training_jobs.cancel_job(deps.database, caller.tenant_id, job_id))


@router.post("/{job_id}/pause", responses=JOB_NOT_FOUND | JOB_ENDED)
async def pause_training_job(caller: CurrentCaller, deps: Deps, job_id: UUID) -> TrainingJobOut:
    """Pause a training job after its current training step."""
    return serialize_job(await training_jobs.pause_job(deps.database, caller.tenant_id, job_id))


@router.post("/{job_id}/resume", responses=JOB_NOT_FOUND | JOB_ENDED)
async def resume_training_job(caller: CurrentCaller, deps: Deps, job_id: UUID) -> TrainingJobOut:
    """Resume a paused or failed training job from its last committed training step."""
    return serialize_job(await training_jobs.resume_job(deps.database, caller.tenant_id, job_id))
