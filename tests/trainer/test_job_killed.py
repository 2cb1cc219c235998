"""A job whose process is killed continues where it was committed, and ends as if nothing had happened."""

import asyncio
from pathlib import Path
from typing import Any

import psycopg
import pytest

from offing.services import policies
from offing.storage import training_jobs
from offing.storage.migrate import LOCAL_TENANT
from offing_trainer.job.job_runner import run_job
from tests.trainer.jobs import Bench
from tests.trainer.killed_job import run_until_killed

KILLS = [
    ("choosing", 2),
    ("forward", 2),
    ("backward", 3),
    ("optimizer", 4),
    ("moved", 2),
    ("saved", 2),
    ("committed", 2),
    ("exporting", 1),
    ("exported", 1),
    ("named", 1),
    ("registered", 1),
]
"""After what a job is killed: between each two things that a step, and an end, are made of."""


async def continue_job(bench: Bench, job: Any) -> Any:
    """What the next process makes of a job whose lease has lapsed."""
    with psycopg.connect(bench.owner_url, autocommit=True) as owner:
        owner.execute("update app.training_job set lease_until = now() - interval '1 hour' where id = %s", (job,))
    held = await training_jobs.claim_job(bench.database, job, "next", 0)
    assert held is not None
    return await run_job(bench.context, held)


def weights(folder: str) -> bytes:
    return (Path(folder) / "model.safetensors").read_bytes()


@pytest.mark.slow
@pytest.mark.timeout(600)
async def test_killed_between_any_two_things_a_job_ends_with_the_weights_of_an_undisturbed_one(
    bench: Bench, app_url: str
) -> None:
    await bench.policy()
    await bench.groups(5)
    whole = await bench.job(name="whole")
    assert (await bench.run(whole.id)).state == "done"
    expected = weights((await policies.get_version_by_name(bench.database, LOCAL_TENANT, "whole@1")).uri)
    for nth, (phase, times) in enumerate(KILLS):
        job = await bench.job(name=f"killed-{nth}")
        await asyncio.to_thread(run_until_killed, app_url, bench.home, job.id, phase, times)
        done = await continue_job(bench, job.id)
        assert (done.state, done.step, done.error) == ("done", 3, ""), phase
        assert await bench.ledger(job.id) == {"used": 10}, phase
        created = await policies.get_version_by_name(bench.database, LOCAL_TENANT, f"killed-{nth}@1")
        assert (weights(created.uri), created.id) == (expected, done.produced_version_id), phase
        versions, _ = await policies.list_versions(bench.database, LOCAL_TENANT, f"killed-{nth}", None, 10)
        assert len(versions) == 1, phase
        assert (done.checkpoint, list(bench.folder(job.id).glob("step-*"))) == ("", []), phase
    left = sorted(path.name for path in (bench.home / "policies").iterdir())
    assert left == sorted(["whole@1", *(f"killed-{nth}@1" for nth in range(len(KILLS)))])
