"""Groups of rollouts by real workers: settled, whole although workers are killed, and hidden from the list of runs."""

import asyncio
import time
from uuid import UUID

import pytest

from offing.core.model import EngineChoice
from offing.core.run import Budget
from offing.services import rollouts
from offing.services.rollouts import ScorerSpec
from offing.storage.groups import Progress
from tests.workers.collecting import JUDGE, Collector, a_task
from tests.workers.conftest import Platform, StartWorker


async def test_rollouts_of_a_real_worker_are_settled_and_hidden_from_the_list_of_runs(
    collector: Collector, platform: Platform, start_worker: StartWorker
) -> None:
    collector.hints.wake_all = platform.hints.wake_all
    made = await collector.collect(a_task("Count?", answers=["not this"]), size=3, durability="sync")
    start_worker(OFFING_SWEEP_SECONDS="0.3")
    progress = await settled_all(collector, made.batch.id)
    assert (progress.complete, progress.open, progress.mean_reward) == (1, 0, 0.0)
    assert await runs_listed(collector) == []


@pytest.mark.parametrize("durability", ["exit", "sync"])
async def test_no_heartbeat_of_an_ended_run_cuts_a_judge_short(
    collector: Collector, platform: Platform, start_worker: StartWorker, durability: str
) -> None:
    """The judge answers for eight heartbeats after its rollout's end. No sweep is near that would ask it again."""
    start_worker(OFFING_HEARTBEAT_SECONDS="0.15", OFFING_SWEEP_SECONDS="60")
    collector.hints.wake_all = platform.hints.wake_all
    slow = {**JUDGE, "options": {**JUDGE["options"], "delay_ms": 1200}}
    made = await collector.collect(
        size=2, scorers=[ScorerSpec("rubric_judge", 1, {"engine": slow})], durability=durability
    )
    progress = await settled_all(collector, made.batch.id, 20)
    assert (progress.complete, progress.mean_reward) == (1, 0.5)
    seen = await collector.group()
    assert [(s.version, s.value) for s in seen.scores] == [(1, 0.5)] * 2
    assert all(r.settled_at and r.ended_at and (r.settled_at - r.ended_at).total_seconds() > 1 for r in seen.rollouts)


@pytest.mark.slow
@pytest.mark.parametrize("durability", ["exit", "sync"])
async def test_groups_are_whole_although_workers_are_killed(
    collector: Collector, platform: Platform, start_worker: StartWorker, durability: str
) -> None:
    collector.hints.wake_all = platform.hints.wake_all
    quick = {"OFFING_LEASE_SECONDS": "1", "OFFING_HEARTBEAT_SECONDS": "0.25", "OFFING_SWEEP_SECONDS": "0.4"}
    script = {"answers": [{"word": "w{turn}"}], "delay_ms": 150}
    slow = {"speaker": EngineChoice(engine="scripted", options=script)}
    workers = [start_worker(**quick), start_worker(**quick)]
    questions = [a_task(f"Question {n}?") for n in range(4)]
    made = await collector.collect(*questions, size=4, engines=slow, durability=durability, budget=Budget(6))
    for worker in workers:
        await asyncio.sleep(0.7)
        worker.kill()
    start_worker(**quick)
    progress = await settled_all(collector, made.batch.id)
    assert (progress.complete, progress.short, progress.rollouts, progress.settled) == (4, 0, 16, 16)
    members = await collector.members()
    assert [(m.member, m.attempt, m.outcome) for m in members] == [
        (n, 1, "answered") for _ in range(4) for n in range(4)
    ]
    seen = [await rollouts.one_group(collector.database, collector.tenant, id) for id in {m.group for m in members}]
    assert [len(group.scores) for group in seen] == [4, 4, 4, 4]


async def settled_all(collector: Collector, batch: UUID, seconds: float = 60) -> Progress:
    """How far the batch is once all of it is settled."""
    give_up = time.monotonic() + seconds
    while (progress := (await rollouts.one_batch(collector.database, collector.tenant, batch)).progress).open:
        assert time.monotonic() < give_up, progress
        await asyncio.sleep(0.1)
    return progress


async def runs_listed(collector: Collector) -> list[UUID]:
    from offing.services import views
    from offing.storage.views import RunFilter

    found, _ = await views.list_runs(collector.database, collector.tenant, RunFilter(), None, 50)
    threads, _ = await views.list_threads(collector.database, collector.tenant, None, 50)
    assert threads == []
    return [shown.run.id for shown in found]
