"""Groups of rollouts on real workers: finalized, complete although workers are killed, not in the list of runs."""

import asyncio
import time
from uuid import UUID

import pytest

from offing.core.model import EngineConfig
from offing.core.run import Budget
from offing.services import rollouts
from offing.services.rollouts import ScorerSpec
from offing.storage.rollout_batches import BatchProgress
from tests.workers.conftest import Platform, StartWorker
from tests.workers.rollout_batches import JUDGE, Collector, a_task


async def test_rollouts_of_a_real_worker_are_finalized_and_hidden_from_the_list_of_runs(
    collector: Collector, platform: Platform, start_worker: StartWorker
) -> None:
    collector.notifier.dispatch_runs = platform.notifier.dispatch_runs
    created = await collector.collect(a_task("Count?", answers=["not this"]), size=3, durability="sync")
    start_worker(OFFING_SWEEP_INTERVAL_SECONDS="0.3")
    progress = await wait_until_all_finalized(collector, created.batch.id)
    assert (progress.complete, progress.open, progress.mean_reward) == (1, 0, 0.0)
    assert await runs_listed(collector) == []


@pytest.mark.parametrize("durability", ["exit", "sync"])
async def test_no_heartbeat_of_an_ended_run_cuts_a_judge_short(
    collector: Collector, platform: Platform, start_worker: StartWorker, durability: str
) -> None:
    """The judge answers for eight heartbeats after its rollout's end. No sweep is near that would ask it again."""
    start_worker(OFFING_HEARTBEAT_INTERVAL_SECONDS="0.15", OFFING_SWEEP_INTERVAL_SECONDS="60")
    collector.notifier.dispatch_runs = platform.notifier.dispatch_runs
    slow = {**JUDGE, "options": {**JUDGE["options"], "delay_ms": 1200}}
    created = await collector.collect(
        size=2, scorers=[ScorerSpec("rubric_judge", 1, {"engine": slow})], durability=durability
    )
    progress = await wait_until_all_finalized(collector, created.batch.id, 20)
    assert (progress.complete, progress.mean_reward) == (1, 0.5)
    seen = await collector.group()
    assert [(s.version, s.value) for s in seen.scores] == [(1, 0.5)] * 2
    assert all(
        r.finalized_at and r.ended_at and (r.finalized_at - r.ended_at).total_seconds() > 1 for r in seen.rollouts
    )


@pytest.mark.slow
@pytest.mark.parametrize("durability", ["exit", "sync"])
async def test_groups_are_whole_although_workers_are_killed(
    collector: Collector, platform: Platform, start_worker: StartWorker, durability: str
) -> None:
    collector.notifier.dispatch_runs = platform.notifier.dispatch_runs
    quick = {
        "OFFING_LEASE_SECONDS": "1",
        "OFFING_HEARTBEAT_INTERVAL_SECONDS": "0.25",
        "OFFING_SWEEP_INTERVAL_SECONDS": "0.4",
    }
    script = {"answers": [{"word": "w{turn}"}], "delay_ms": 150}
    slow = {"speaker": EngineConfig(engine="scripted", options=script)}
    workers = [start_worker(**quick), start_worker(**quick)]
    questions = [a_task(f"Question {n}?") for n in range(4)]
    created = await collector.collect(*questions, size=4, engines=slow, durability=durability, budget=Budget(6))
    for worker in workers:
        await asyncio.sleep(0.7)
        worker.kill()
    start_worker(**quick)
    progress = await wait_until_all_finalized(collector, created.batch.id)
    assert (progress.complete, progress.incomplete, progress.rollouts, progress.finalized) == (4, 0, 16, 16)
    members = await collector.members()
    assert [(m.member, m.attempt, m.outcome) for m in members] == [
        (n, 1, "answered") for _ in range(4) for n in range(4)
    ]
    seen = [await rollouts.get_group(collector.database, collector.tenant, id) for id in {m.group_id for m in members}]
    assert [len(group.scores) for group in seen] == [4, 4, 4, 4]


async def wait_until_all_finalized(collector: Collector, batch_id: UUID, seconds: float = 60) -> BatchProgress:
    """How far the batch is once all of it is finalized."""
    give_up = time.monotonic() + seconds
    while (progress := (await rollouts.get_batch(collector.database, collector.tenant, batch_id)).progress).open:
        assert time.monotonic() < give_up, progress
        await asyncio.sleep(0.1)
    return progress


async def runs_listed(collector: Collector) -> list[UUID]:
    from offing.services import run_lists, threads
    from offing.storage.run_filter import RunFilter

    result = await run_lists.list_runs(collector.database, collector.tenant, RunFilter(), None, None, 50)
    listed, _ = await threads.list_threads(collector.database, collector.tenant, None, 50)
    assert listed == []
    return [rendered.run.id for rendered in result.runs]
