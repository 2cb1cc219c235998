"""A worker removes what ended runs no longer need, and threads go on from what it keeps."""

import asyncio
import time
from uuid import UUID

import pytest

from offing.core.run import Budget, RunStatus
from offing.core.step import StepKind
from offing.services.runs import RunRequest
from tests.workers.collecting import Sql
from tests.workers.conftest import Platform, StartWorker

CHECKPOINTS = "select count(*) from app.checkpoint where run_id = %s"

PATIENCE = 60.0


async def left(sql: Sql, run: UUID, wanted: int) -> None:
    deadline = time.monotonic() + PATIENCE
    while sql(CHECKPOINTS, run) != [(wanted,)]:
        assert time.monotonic() < deadline, sql(CHECKPOINTS, run)
        await asyncio.sleep(0.1)


@pytest.mark.timeout(300)
async def test_an_ended_run_keeps_its_last_checkpoint_and_its_thread_goes_on(
    platform: Platform, start_worker: StartWorker, sql: Sql
) -> None:
    start_worker(OFFING_RETENTION_SECONDS="0.5", OFFING_KEEP_CHECKPOINTS_DAYS="0")
    first = await platform.submit(RunRequest("Count", "counting", budget=Budget(turns=5)))
    assert (await platform.ended(first.id, PATIENCE)).status is RunStatus.DONE
    await left(sql, first.id, 1)
    second = await platform.submit(RunRequest("Again", "counting", thread=first.thread, budget=Budget(turns=2)))
    assert (await platform.ended(second.id, PATIENCE)).status is RunStatus.DONE
    tools = [step.turn for step in await platform.steps(second.id) if step.kind is StepKind.TOOL]
    assert tools == [1, 2]
    assert len(await platform.steps(first.id)) > 10
    await left(sql, second.id, 1)
    exit_run = await platform.submit(RunRequest("Exit", "counting", budget=Budget(turns=3), durability="exit"))
    assert (await platform.ended(exit_run.id, PATIENCE)).status is RunStatus.DONE
    await left(sql, exit_run.id, 0)
