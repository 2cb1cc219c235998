"""A loop's step whose rollouts end with faults: it says so, and the next attempt makes others instead of waiting for
what will not change."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress

import pytest

from offing.core.errors import Conflict
from offing.core.run import RunStatus, StopReason
from offing.models.policy_folder import PolicyHashes
from offing.services import policies, tasks, training_jobs
from offing.services.graphs import open_registry
from offing.services.policies import PolicyRegistration
from offing.storage.policy_versions import PolicyVersionRow
from offing.storage.training_groups import GroupSummary
from offing.storage.training_jobs import TrainingJobRow
from offing_trainer.config import parse_config
from offing_trainer.job.rollout_collector import MAX_BATCHES_PER_STEP
from offing_trainer.job.rollout_collector import RolloutCollector as StepCollector
from tests.workers.processes import ALL_GRAPHS
from tests.workers.rollout_batches import Collector, Sql, a_task, wait_until_finalized

TABLES = {
    "algorithm": "flow-grpo",
    "policy": "planner@1",
    "max_steps": 1,
    "data": {"groups_per_step": 2, "min_informative_groups": 0},
    "collect": {
        "role": "speaker",
        "graph": "counting",
        "dataset": "test",
        "group_size": 1,
        "max_turns": 2,
        "max_attempts": 1,
    },
}

BATCHES = "select count(*) from app.rollout_batch"


async def served(_version: PolicyVersionRow) -> None:
    """Always there."""


async def a_job(collector: Collector) -> TrainingJobRow:
    await policies.register_version(
        collector.database,
        collector.tenant,
        PolicyRegistration(name="planner", kind="full", uri="/nowhere", hashes=PolicyHashes("a" * 64, "", "")),
    )
    await tasks.store_tasks(collector.database, collector.tenant, "test", [a_task("First?"), a_task("Second?")])
    return await training_jobs.create_job(collector.database, collector.tenant, TABLES, kind="loop")


async def step(collector: Collector, job: TrainingJobRow) -> list[GroupSummary]:
    """The groups of the job's first step."""
    making = StepCollector(collector.database, collector.notifier, open_registry(ALL_GRAPHS), served)
    policy = await policies.get_version_by_name(collector.database, collector.tenant, "planner@1")
    return await making.collect_step(collector.tenant, job, parse_config(TABLES), policy, lambda _: None)


@asynccontextmanager
async def ending(collector: Collector, *, well: bool) -> AsyncGenerator[None]:
    """Every rollout ends at once."""

    async def work() -> None:
        while True:
            for member in await collector.members():
                if member.finalized_at is None and well:
                    await collector.end(member.run_id, "An answer")
                elif member.finalized_at is None:
                    await collector.end(member.run_id, reason=StopReason.GRAPH_ERROR, status=RunStatus.FAILED)
                await wait_until_finalized(collector, member.run_id)
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
        with pytest.raises(Conflict, match="No group of step 1 became complete, because rollouts failed"):
            await step(collector, job)
    assert sql(BATCHES) == [(MAX_BATCHES_PER_STEP,)]
    async with ending(collector, well=True):
        heads = await step(collector, job)
    assert sql(BATCHES) == [(MAX_BATCHES_PER_STEP + 1,)]
    assert [head.state for head in heads] == [*["incomplete"] * 2 * MAX_BATCHES_PER_STEP, "complete", "complete"]
    async with ending(collector, well=True):
        again = await step(collector, job)
    assert [head.id for head in again] == [head.id for head in heads]
    assert sql(BATCHES) == [(MAX_BATCHES_PER_STEP + 1,)]
