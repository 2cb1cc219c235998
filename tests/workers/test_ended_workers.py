"""Workers that end, by a kill or because they hang: how fast, and what others may claim then."""

import asyncio

from offing.core.model import EngineConfig
from offing.core.run import Budget, RunStatus
from offing.core.step import StepKind
from offing.process_name import render_process_name
from offing.services.runs import RunRequest
from offing.storage.heartbeat import release_leases
from offing_workers.app import EXIT_CODE
from tests.workers.conftest import Platform, StartWorker

LONG_LEASE = {"OFFING_LEASE_SECONDS": "600"}


def slow(turns: int) -> RunRequest:
    options = {"answers": [{"word": "w{turn}"}], "delay_ms": 500}
    engines = {"speaker": EngineConfig(engine="scripted", options=options)}
    return RunRequest("Count", "counting", budget=Budget(max_turns=turns), engines=engines)


async def test_a_run_of_a_killed_worker_continues_at_once_when_its_leases_are_released(
    platform: Platform, start_worker: StartWorker, app_url: str
) -> None:
    """By the name under which the worker was started. The lease is ten minutes."""
    first = start_worker(OFFING_PROCESS_NONCE="abcd", **LONG_LEASE)
    run = await platform.submit(slow(6))
    await platform.until(run.id, lambda row: row.last_seq > 4)
    await asyncio.to_thread(first.kill)
    assert release_leases(app_url, render_process_name(first.pid, "other")) == 0
    assert release_leases(app_url, render_process_name(first.pid, "abcd")) == 1
    await asyncio.to_thread(start_worker, **LONG_LEASE)
    ended = await platform.ended(run.id, 60)
    kinds = [s.kind for s in await platform.steps(run.id)]
    assert (ended.status, ended.fence) == (RunStatus.DONE, 2)
    assert kinds.count(StepKind.RESUMED) == 1
    assert kinds.count(StepKind.TOOL_RESULT) == 6


async def test_a_worker_that_hangs_while_it_is_closed_ends_within_its_limit(start_worker: StartWorker) -> None:
    worker = await asyncio.to_thread(start_worker, module="tests.workers.hanging_worker")
    assert await asyncio.to_thread(worker.finish) == EXIT_CODE
    assert "did not stop in time" in worker.log.read_text()
