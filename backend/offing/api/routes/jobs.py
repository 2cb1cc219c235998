"""Training jobs: asking for one, watching it, and telling it to rest, go on or end. `offing trainer` runs them."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query, Response

from offing.api.auth import Known
from offing.api.jobs import (
    EventList,
    JobDetail,
    JobIn,
    JobOut,
    JobPage,
    JobState,
    MetricList,
    event_list,
    job_detail,
    job_listed,
    job_out,
    metric_list,
)
from offing.api.parts import Held
from offing.api.routes.responses import TOO_LARGE, problems
from offing.api.routing import StrictRoute
from offing.services import training

router = APIRouter(prefix="/training-jobs", tags=["training"], route_class=StrictRoute)

NO_JOB = problems(_404="There is no such training job.")

OVER = problems(_409="The job is over.")


@router.post("", status_code=201, responses=TOO_LARGE)
async def create_training_job(caller: Known, held: Held, wanted: JobIn, response: Response) -> JobOut:
    """Queue a job. The chain of plug-ins is checked when it begins; a job that cannot be done fails with the reason."""
    job = await training.create(held.database, caller.tenant, wanted.config)
    response.headers["Location"] = f"/api/v1/training-jobs/{job.id}"
    return job_out(job)


@router.get("")
async def list_training_jobs(
    caller: Known,
    held: Held,
    state: JobState | None = None,
    cursor: Annotated[UUID | None, Query(description="`next` of the page before.")] = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> JobPage:
    """Training jobs, newest first."""
    page, following = await training.page(held.database, caller.tenant, state, cursor, limit)
    rewards = await training.rewards(held.database, caller.tenant, [job.id for job in page])
    return JobPage(items=[job_listed(job, rewards.get(job.id)) for job in page], next=following and str(following))


@router.get("/{job_id}", responses=NO_JOB)
async def get_training_job(caller: Known, held: Held, job_id: UUID) -> JobDetail:
    """A job with what it decided about rollouts."""
    return job_detail(await training.one(held.database, caller.tenant, job_id))


@router.get("/{job_id}/metrics", responses=NO_JOB)
async def get_training_metrics(
    caller: Known,
    held: Held,
    job_id: UUID,
    after: Annotated[int, Query(ge=0, le=2**31 - 1, description="Figures of later steps only.")] = 0,
    name: Annotated[list[str] | None, Query(max_length=50, description="Of these names only.")] = None,
    limit: Annotated[int, Query(ge=1, le=20_000)] = 5_000,
) -> MetricList:
    """Figures, step by step; whole steps, unless one alone has more than `limit`."""
    return metric_list(await training.metrics(held.database, caller.tenant, job_id, after, name, limit))


@router.get("/{job_id}/events", responses=NO_JOB)
async def get_training_events(
    caller: Known,
    held: Held,
    job_id: UUID,
    after: Annotated[UUID | None, Query(description="Later ones only.")] = None,
    limit: Annotated[int, Query(ge=1, le=1_000)] = 200,
) -> EventList:
    """What was decided about a job and what came of it, in order."""
    return event_list(await training.events(held.database, caller.tenant, job_id, after, limit))


@router.post("/{job_id}/cancel", responses=NO_JOB | OVER)
async def cancel_training_job(caller: Known, held: Held, job_id: UUID) -> JobOut:
    """End a job after the step that it is in; what it committed stays."""
    return job_out(await training.cancel(held.database, caller.tenant, job_id))


@router.post("/{job_id}/pause", responses=NO_JOB | OVER)
async def pause_training_job(caller: Known, held: Held, job_id: UUID) -> JobOut:
    """Let a job rest after the step that it is in."""
    return job_out(await training.pause(held.database, caller.tenant, job_id))


@router.post("/{job_id}/resume", responses=NO_JOB | OVER)
async def resume_training_job(caller: Known, held: Held, job_id: UUID) -> JobOut:
    """Let a job that rests or failed go on from its last committed step."""
    return job_out(await training.resume(held.database, caller.tenant, job_id))
