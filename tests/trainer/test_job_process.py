"""The process that runs queued jobs, as `offing up` supervises it."""

import asyncio
import os
import signal
import sys
from pathlib import Path
from uuid import UUID

import pytest

from offing.services import training_jobs
from offing.services.training_jobs import JobWithLedger
from offing.storage.migrate import LOCAL_TENANT
from tests.trainer.jobs import Bench

JOB_SECONDS, STOP_SECONDS = 100, 30

pytestmark = pytest.mark.timeout(2 * (JOB_SECONDS + STOP_SECONDS))


async def over(bench: Bench, job_id: UUID) -> JobWithLedger:
    """The job, when it neither waits nor runs any more."""
    while True:
        seen = await training_jobs.get_job(bench.database, LOCAL_TENANT, job_id)
        if seen.job.state not in ("queued", "running"):
            return seen
        await asyncio.sleep(0.2)


@pytest.mark.slow
async def test_a_queued_job_is_run_and_a_stopped_process_gives_its_job_back(
    bench: Bench, app_url: str, tmp_path: Path
) -> None:
    await bench.policy()
    await bench.groups(3)
    job = await bench.job()
    ready = tmp_path / "ready"
    env = {**os.environ, "OFFING_APP_DATABASE_URL": app_url, "OFFING_HOME": str(bench.home), "OMP_NUM_THREADS": "1"}
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "offing.cli", "trainer", env={**env, "OFFING_READY_FILE": str(ready)}
    )
    try:
        async with asyncio.timeout(JOB_SECONDS):
            seen = await over(bench, job.id)
    finally:
        process.send_signal(signal.SIGTERM)
        code = await asyncio.wait_for(process.wait(), STOP_SECONDS)
    assert ready.read_text() == str(process.pid)
    assert (seen.job.state, seen.job.error, code) == ("done", "", 0)
    assert (await training_jobs.get_job(bench.database, LOCAL_TENANT, job.id)).ledger == {"used": 6}


async def test_a_job_that_is_cut_short_is_queued_again_and_continues(bench: Bench) -> None:
    await bench.policy()
    await bench.groups(4)
    job = await bench.job()
    running = asyncio.create_task(bench.run(job.id))
    while "committed" not in bench.phases:  # noqa: ASYNC110  # said by another task
        await asyncio.sleep(0.05)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert (await training_jobs.get_job(bench.database, LOCAL_TENANT, job.id)).job.state == "queued"
    done = await bench.run(job.id)
    assert (done.state, done.step, await bench.ledger(job.id)) == ("done", 2, {"used": 8})
