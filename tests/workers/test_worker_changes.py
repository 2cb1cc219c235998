"""Runs that go from hand to hand: in slices, after a killed worker, and by one that is asked to end."""

from datetime import timedelta

from offing.core.run import RunStatus
from offing.core.step import StepKind
from tests.workers.conftest import Platform, StartWorker
from tests.workers.rollout_batches import Sql
from tests.workers.test_protocol import counting, slow


async def test_slices_of_one_turn_leave_the_same_steps(platform: Platform, start_worker: StartWorker) -> None:
    start_worker(OFFING_SLICE_MAX_TURNS="1")
    run = await platform.submit(counting(5))
    ended = await platform.ended(run.id)
    steps = await platform.steps(run.id)
    assert ended.fence >= 5
    assert [s.seq for s in steps] == list(range(1, len(steps) + 1))
    assert [s.turn for s in steps if s.kind is StepKind.MEMORY] == [1, 2, 3, 4, 5]


async def test_a_killed_worker_loses_and_repeats_nothing(platform: Platform, start_worker: StartWorker) -> None:
    worker = start_worker()
    run = await platform.submit(counting(40, engines=slow(40)))
    await platform.until(run.id, lambda row: row.last_seq > 25)
    worker.kill()
    struck = await platform.run(run.id)
    assert struck.status is RunStatus.RUNNING
    start_worker()
    ended = await platform.ended(run.id)
    steps = await platform.steps(run.id)
    assert ended.status is RunStatus.DONE
    assert [s.turn for s in steps if s.kind is StepKind.TOOL_RESULT] == list(range(1, 41))
    assert [s.payload["output"]["word"] for s in steps if s.kind is StepKind.PLAN] == [f"w{n}" for n in range(1, 41)]
    assert any(s.kind is StepKind.RESUMED for s in steps)


async def test_all_runs_of_a_killed_worker_are_claimed_after_one_sweep(
    platform: Platform, start_worker: StartWorker, sql: Sql
) -> None:
    submitted = [await platform.submit(counting(40, engines=slow(500))) for _ in range(40)]
    worker = start_worker(OFFING_WORKER_CONCURRENCY="60")
    for run in submitted:
        await platform.running(run.id)
    worker.kill()
    sql("update app.run set lease_until = null")
    (before,) = sql("select max(dispatched_at) from app.run")
    start_worker(OFFING_WORKER_CONCURRENCY="60", OFFING_SWEEP_INTERVAL_SECONDS="12")
    for run in submitted:
        await platform.until(run.id, lambda row: row.fence == 2)
    # A run that the first sweep found and nobody claimed would be found by the next one, six seconds later.
    ((first, spread),) = sql("select min(dispatched_at), max(dispatched_at) - min(dispatched_at) from app.run")
    assert first > before[0]
    assert spread < timedelta(seconds=5)


async def test_sigterm_drains_and_another_worker_continues(platform: Platform, start_worker: StartWorker) -> None:
    worker = start_worker()
    submitted = [await platform.submit(counting(30, engines=slow(150))) for _ in range(4)]
    for run in submitted:
        await platform.until(run.id, lambda row: row.last_seq > 8)
    assert worker.finish() == 0
    left = [await platform.run(run.id) for run in submitted]
    assert {row.status for row in left} == {RunStatus.QUEUED}
    start_worker()
    for run in submitted:
        assert (await platform.ended(run.id)).status is RunStatus.DONE
        steps = await platform.steps(run.id)
        assert [s.turn for s in steps if s.kind is StepKind.TOOL_RESULT] == list(range(1, 31))
        assert StepKind.RESUMED not in [s.kind for s in steps]
