"""A loop's step whose rollouts end with faults: it says so, and the next attempt makes others instead of waiting for
what will not change."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress

import pytest

from offing.core.errors import Conflict
from offing.core.run import RunStatus, StopReason
from offing.services import policies, tasks, training
from offing.services.graphs import installed
from offing.storage.policy_versions import VersionRow
from offing.storage.training_groups import GroupHead
from offing.storage.training_jobs import JobRow
from offing_trainer.config import config_of
from offing_trainer.job.collecting import MOST_BATCHES
from offing_trainer.job.collecting import Collector as StepCollector
from tests.workers.collecting import Collector, Sql, a_task, settled
from tests.workers.processes import ALL_GRAPHS

TABLES = {
    "algorithm": "flow-grpo",
    "policy": "planner@1",
    "steps": 1,
    "data": {"groups_per_step": 2, "minimum_informative_groups": 0},
    "collect": {"role": "speaker", "graph": "counting", "dataset": "test", "group_size": 1, "turns": 2, "attempts": 1},
}

BATCHES = "select count(*) from app.batch"


async def served(_version: VersionRow) -> None:
    """Always there."""


async def a_job(collector: Collector) -> JobRow:
    await policies.register(
        collector.database, collector.tenant, name="planner", kind="full", uri="/nowhere", sha256="a" * 64,
        tokenizer_sha256="", template_sha256="",
    )  # fmt: skip
    await tasks.store(collector.database, collector.tenant, "test", [a_task("First?"), a_task("Second?")])
    return await training.create(collector.database, collector.tenant, TABLES, kind="loop")


async def step(collector: Collector, job: JobRow) -> list[GroupHead]:
    """The groups of the job's first step."""
    making = StepCollector(collector.database, collector.hints, installed(ALL_GRAPHS), served)
    policy = await policies.named(collector.database, collector.tenant, "planner@1")
    return await making.collected(collector.tenant, job, config_of(TABLES), policy, lambda _: None)


@asynccontextmanager
async def ending(collector: Collector, *, well: bool) -> AsyncGenerator[None]:
    """Every rollout ends as soon as it is made."""

    async def work() -> None:
        while True:
            for member in await collector.members():
                if member.settled_at is None and well:
                    await collector.end(member.run, "An answer")
                elif member.settled_at is None:
                    await collector.end(member.run, reason=StopReason.GRAPH_ERROR, status=RunStatus.FAILED)
                await settled(collector, member.run)
            await asyncio.sleep(0.05)

    working = asyncio.create_task(work())
    try:
        yield
    finally:
        working.cancel()
        with suppress(asyncio.CancelledError):
            await working


async def test_a_step_that_faults_left_without_a_whole_group_is_given_other_rollouts_the_next_time(
    collector: Collector, sql: Sql
) -> None:
    job = await a_job(collector)
    async with ending(collector, well=False):
        with pytest.raises(Conflict, match="No group of step 1 became complete: rollouts end with faults"):
            await step(collector, job)
    assert sql(BATCHES) == [(MOST_BATCHES,)]
    async with ending(collector, well=True):
        heads = await step(collector, job)
    assert sql(BATCHES) == [(MOST_BATCHES + 1,)]
    assert [head.state for head in heads] == [*["short"] * 2 * MOST_BATCHES, "complete", "complete"]
    async with ending(collector, well=True):
        again = await step(collector, job)
    assert [head.id for head in again] == [head.id for head in heads]
    assert sql(BATCHES) == [(MOST_BATCHES + 1,)]
