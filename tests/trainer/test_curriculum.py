"""Which tasks a job collects next: what it knows of them, where they come from, and the record that it keeps."""

import asyncio
import shutil
from collections import Counter
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
import pytest

from offing.core.errors import InvalidInput
from offing.core.step import Step
from offing.services import tasks
from offing.services.graphs import open_registry
from offing.services.tasks import TaskSpec
from offing.storage import training_jobs
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.policy_versions import PolicyVersionRow
from offing.storage.pool import Database
from offing.storage.training_groups import GroupMember, GroupSummary
from offing_trainer.config import CollectConfig, CurriculumConfig, TrainConfig, parse_config
from offing_trainer.job.contract import PhaseCallback, TrainingStepResult
from offing_trainer.job.curriculum import CURRICULUM_TABLE, select_tasks, update_curriculum
from offing_trainer.job.group_loader import LoadedGroups
from offing_trainer.job.lineage import JobPolicies
from offing_trainer.job.rollout_collector import RolloutCollector, draw_tasks
from tests.storage.rollouts import LONG_AGO
from tests.trainer.jobs import Bench, job_context

HOW = CurriculumConfig()

TASKS = [UUID(int=n) for n in range(1, 9)]


def known(**by_task: tuple[float, float]) -> dict[str, Any]:
    """`t3=(6, 2)`: the third task, with six successes and two failures."""
    table = {str(UUID(int=int(name[1:]))): {"alpha": a, "beta": b, "version": 1} for name, (a, b) in by_task.items()}
    return {CURRICULUM_TABLE: table}


def a_head(task_id: UUID, *rewards: float | None, policy: str = "planner@1") -> GroupSummary:
    members = tuple(GroupMember(n, UUID(int=n), "answered", reward, True) for n, reward in enumerate(rewards))
    return GroupSummary(UUID(int=99), task_id, "complete", LONG_AGO, len(rewards), "counting", members, (policy,))


def test_tasks_in_between_are_drawn_before_those_that_are_solved_or_hopeless() -> None:
    state = known(t1=(99, 1), t2=(1, 99), t3=(50, 50))
    results = Counter(task for seed in range(400) for task in select_tasks(HOW, state, TASKS[:3], 1, seed))
    weight = [0.0995 + 0.05, 0.0995 + 0.05, 0.5 + 0.05]
    for task, expected in zip(TASKS[:3], weight, strict=True):
        assert results[task] / 400 == pytest.approx(expected / sum(weight), abs=0.06)


def test_a_draw_is_the_same_for_the_same_seed_and_record_and_takes_each_task_once() -> None:
    state = known(t1=(99, 1), t2=(4, 4))
    one = select_tasks(HOW, state, TASKS, 4, 7)
    assert one == select_tasks(HOW, state, TASKS, 4, 7) == sorted(set(one))
    assert len({tuple(select_tasks(HOW, state, TASKS, 4, seed)) for seed in range(20)}) > 10
    assert select_tasks(HOW, state, TASKS[:3], 4, 7) == TASKS[:3]


def test_a_record_fades_with_each_version_and_counts_scored_rollouts_alone() -> None:
    first = update_curriculum(HOW, {}, [a_head(TASKS[0], 1.0, 0.0, None, -0.1), a_head(TASKS[1], None)])
    assert first[CURRICULUM_TABLE] == {str(TASKS[0]): {"alpha": 3.5 + 1, "beta": 3.5 + 2, "version": 1}}
    later = update_curriculum(HOW, first, [a_head(TASKS[0], 1.0, policy="planner@2")])[CURRICULUM_TABLE][str(TASKS[0])]
    assert (later["alpha"], later["beta"], later["version"]) == pytest.approx((4.5 * 0.875 + 1, 5.5 * 0.875, 2))


async def quiz(database: Database, count: int) -> list[UUID]:
    specs = [TaskSpec(question=f"What is {n}?", answers=[f"w{n}"]) for n in range(count)]
    return (await tasks.store_tasks(database, LOCAL_TENANT, "quiz", specs)).task_ids


async def test_tasks_of_a_dataset_are_drawn_at_random_each_once(bench: Bench) -> None:
    stored = await quiz(bench.database, 9)
    collect = CollectConfig(role="planner", dataset="quiz")
    draws = [await draw_tasks(bench.database, LOCAL_TENANT, collect, 4, seed) for seed in range(8)]
    assert all(len(set(draw)) == 4 and set(draw) <= set(stored) for draw in draws)
    assert len({tuple(draw) for draw in draws}) > 4
    assert draws[3] == await draw_tasks(bench.database, LOCAL_TENANT, collect, 4, 3)
    assert set(await draw_tasks(bench.database, LOCAL_TENANT, collect, 50, 0)) == set(stored)
    with pytest.raises(InvalidInput, match="there is no dataset 'riddles'"):
        await draw_tasks(bench.database, LOCAL_TENANT, CollectConfig(role="planner", dataset="riddles"), 4, 0)


async def test_tasks_of_worlds_come_from_one_world_a_draw_in_turn(bench: Bench) -> None:
    collect = CollectConfig(role="planner", worlds=("train-1@50", "train-2@50"), hops=(1, 1))
    for seed, world in ((4, "world:train-1@50"), (5, "world:train-2@50")):
        draw = await draw_tasks(bench.database, LOCAL_TENANT, collect, 3, seed)
        assert {(await tasks.get_task(bench.database, LOCAL_TENANT, task)).dataset for task in draw} == {world}


@dataclass
class Idle:
    """Weights that stay unchanged."""

    start: Path

    def load(self, folder: Path | None) -> None: ...

    async def load_groups(
        self, database: Database, tenant_id: UUID, summaries: Sequence[GroupSummary], state: Mapping[str, Any]
    ) -> LoadedGroups:
        return LoadedGroups((), {}, 0)

    def train_step(
        self, groups: LoadedGroups, state: Mapping[str, Any], step: int, progress: float, on_phase: PhaseCallback
    ) -> TrainingStepResult:
        return TrainingStepResult({}, {}, {})

    def save(self, folder: Path, moments_of: Path | None = None) -> None:
        folder.mkdir(parents=True)

    def export_policy(self, folder: Path) -> None:
        shutil.copytree(self.start, folder)


def idle(config: TrainConfig, policies: JobPolicies) -> Idle:
    return Idle(Path(policies.start.uri))


class Nobody:
    """Hears of nothing."""

    async def dispatch_run(self, run_id: UUID) -> None: ...

    async def dispatch_runs(self, run_ids: Sequence[UUID]) -> None: ...

    async def notify_control(self, run_id: UUID) -> None: ...

    async def publish_steps(self, tenant_id: UUID, run_id: UUID, steps: Sequence[Step], /) -> None: ...


async def no_engine(version: PolicyVersionRow) -> None:
    """Nothing has to answer."""


@asynccontextmanager
async def solving(owner_url: str, task_id: UUID) -> AsyncGenerator[None]:
    """Ends rollouts as soon as there are any: those of one task succeed, all others fail."""

    def end() -> None:
        with psycopg.connect(owner_url, autocommit=True) as owner:
            owner.execute(
                "update app.rollout o set outcome = 'answered', reward = (g.task_id = %s)::int, finalized_at = now() "
                "from app.rollout_group g where g.id = o.group_id and g.state = 'open'",
                (task_id,),
            )
            owner.execute(
                "update app.rollout_group g set state = 'complete', completed_at = clock_timestamp() "
                "where state = 'open' "
                "and (select bool_and(finalized_at is not null) from app.rollout where group_id = g.id)"
            )

    async def work() -> None:
        while True:
            await asyncio.to_thread(end)
            await asyncio.sleep(0.02)

    working = asyncio.create_task(work())
    try:
        yield
    finally:
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)


SHARP = CurriculumConfig(candidates_per_task=2, novelty_exponent=2.0, prior_rollouts=0.5)
"""What was tried hardly comes again."""


async def test_a_job_collects_from_a_dataset_by_what_it_has_learned_of_its_tasks(bench: Bench) -> None:
    stored = await quiz(bench.database, 6)
    await bench.policy()
    collect = {"role": "planner", "dataset": "quiz", "group_size": 2, "curriculum": SHARP.model_dump()}
    data = {"groups_per_step": 3, "min_informative_groups": 0}
    job = await bench.job(collect=collect, max_steps=2, data=data, name="kept")
    collector = RolloutCollector(bench.database, Nobody(), open_registry(), no_engine)
    async with solving(bench.owner_url, stored[0]):
        done = await bench.run(job.id, job_context(bench, open_trainer=idle, collect_groups=collector.collect_step))
    assert (done.state, done.error, done.step, done.group_count) == ("done", "", 2, 6)
    steps = await collected(bench.owner_url, job.id)
    assert [len(step) for step in steps] == [3, 3]
    config = parse_config(job.config)
    assert config.collect is not None
    before = update_curriculum(SHARP, {}, [a_head(task, *[float(task == stored[0])] * 2) for task in steps[0]])
    seed = job.seed * 1_000_003 + 4  # the first batch of the second step
    candidates = await draw_tasks(bench.database, LOCAL_TENANT, config.collect, 6, seed)
    assert steps[1] == set(select_tasks(SHARP, before, candidates, 3, seed))
    assert steps[1] != set(select_tasks(SHARP, {}, candidates, 3, seed)), "what was learned has to show with this seed"
    async with bench.database.transaction(LOCAL_TENANT) as connection:
        table = (await training_jobs.get_plugin_state(connection, job.id))[CURRICULUM_TABLE]
    assert table.keys() == {str(task) for task in steps[0] | steps[1]}
    assert all((entry["alpha"] > 1) == (task == str(stored[0])) for task, entry in table.items())


async def collected(owner_url: str, job_id: UUID) -> list[set[UUID]]:
    """Tasks by batch."""
    with psycopg.connect(owner_url) as owner:
        rows = owner.execute(
            "select array_agg(g.task_id) from app.rollout_group g join app.rollout_batch b on b.id = g.batch_id "
            "where g.tags @> array[%s] group by b.id order by b.id",
            (f"job:{job_id}",),
        ).fetchall()
    return [set(result) for (result,) in rows]
