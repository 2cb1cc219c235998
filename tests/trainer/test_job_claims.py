"""A job belongs to the process that was told to run it, while a trainer process beside it polls for queued jobs."""

import pytest

from offing.core.errors import Conflict
from offing.services import training_jobs as training_job_service
from offing.services.training_jobs import JobClaimant
from offing.storage import training_jobs
from offing.storage.migrate import LOCAL_TENANT
from offing_trainer.job.job_runner import run_job
from tests.trainer.jobs import TABLES, Bench

COMMAND = JobClaimant("command", 60)


async def test_a_trainer_process_cannot_claim_a_job_that_was_created_to_run_here(bench: Bench) -> None:
    await bench.policy()
    await bench.groups(2)
    token = await training_job_service.create_claimed_job(bench.database, LOCAL_TENANT, TABLES, COMMAND)
    assert await training_jobs.claim_job(bench.database, None, "trainer", 60) is None
    done = await run_job(bench.context, token)
    assert (done.state, done.error) == ("done", "")


async def test_a_paused_job_that_is_resumed_here_runs_here(bench: Bench) -> None:
    await bench.policy()
    await bench.groups(2)
    job = await bench.job()
    await training_job_service.pause_job(bench.database, LOCAL_TENANT, job.id)
    token = await training_job_service.resume_claimed_job(bench.database, LOCAL_TENANT, job.id, COMMAND)
    assert await training_jobs.claim_job(bench.database, None, "trainer", 60) is None
    assert (await run_job(bench.context, token)).state == "done"


async def test_a_job_that_another_process_runs_is_not_resumed(bench: Bench) -> None:
    await bench.policy()
    job = await bench.job()
    held = await training_jobs.claim_job(bench.database, None, "trainer", 60)
    assert held is not None
    with pytest.raises(Conflict, match="Another process runs job"):
        await training_job_service.resume_claimed_job(bench.database, LOCAL_TENANT, job.id, COMMAND)


async def test_a_trainer_process_leaves_the_job_of_a_training_loop_to_the_loop(bench: Bench) -> None:
    await bench.policy()
    job = await training_job_service.create_job(bench.database, LOCAL_TENANT, TABLES, kind="loop")
    assert await training_jobs.claim_job(bench.database, None, "trainer", 60) is None
    held = await training_jobs.claim_job(bench.database, job.id, "loop", 60)
    assert held is not None
