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
from offing.services import tasks
from offing.services.graphs import installed
from offing.services.tasks import TaskSpec
from offing.storage import training_jobs
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.policy_versions import VersionRow
from offing.storage.pool import Database
from offing.storage.training_groups import GroupHead, Member
from offing_trainer.config import CollectConfig, CurriculumConfig, TrainConfig, config_of
from offing_trainer.job.collecting import Collector, drawn
from offing_trainer.job.contract import Said, Stepped
from offing_trainer.job.curriculum import CURRICULUM, chosen, recorded
from offing_trainer.job.lineage import Policies
from offing_trainer.job.reading import Read
from tests.storage.rollouts import LONG_AGO
from tests.trainer.jobs import Bench, with_room

HOW = CurriculumConfig()

TASKS = [UUID(int=n) for n in range(1, 9)]


def known(**by_task: tuple[float, float]) -> dict[str, Any]:
    """`t3=(6, 2)`: the third task, with six successes and two failures."""
    table = {str(UUID(int=int(name[1:]))): {"alpha": a, "beta": b, "version": 1} for name, (a, b) in by_task.items()}
    return {CURRICULUM: table}


def a_head(task: UUID, *rewards: float | None, policy: str = "planner@1") -> GroupHead:
    members = tuple(Member(n, UUID(int=n), "answered", reward, True) for n, reward in enumerate(rewards))
    return GroupHead(UUID(int=99), task, "complete", LONG_AGO, len(rewards), "counting", members, (policy,))


def test_tasks_in_between_are_drawn_before_those_that_are_solved_or_hopeless() -> None:
    state = known(t1=(99, 1), t2=(1, 99), t3=(50, 50))
    found = Counter(task for seed in range(400) for task in chosen(HOW, state, TASKS[:3], 1, seed))
    weight = [0.0995 + 0.05, 0.0995 + 0.05, 0.5 + 0.05]
    for task, expected in zip(TASKS[:3], weight, strict=True):
        assert found[task] / 400 == pytest.approx(expected / sum(weight), abs=0.06)


def test_a_draw_is_the_same_for_the_same_seed_and_record_and_takes_each_task_once() -> None:
    state = known(t1=(99, 1), t2=(4, 4))
    one = chosen(HOW, state, TASKS, 4, 7)
    assert one == chosen(HOW, state, TASKS, 4, 7) == sorted(set(one))
    assert len({tuple(chosen(HOW, state, TASKS, 4, seed)) for seed in range(20)}) > 10
    assert chosen(HOW, state, TASKS[:3], 4, 7) == TASKS[:3]


def test_a_record_fades_with_each_version_and_counts_scored_rollouts_alone() -> None:
    first = recorded(HOW, {}, [a_head(TASKS[0], 1.0, 0.0, None, -0.1), a_head(TASKS[1], None)])
    assert first[CURRICULUM] == {str(TASKS[0]): {"alpha": 3.5 + 1, "beta": 3.5 + 2, "version": 1}}
    later = recorded(HOW, first, [a_head(TASKS[0], 1.0, policy="planner@2")])[CURRICULUM][str(TASKS[0])]
    assert (later["alpha"], later["beta"], later["version"]) == pytest.approx((4.5 * 0.875 + 1, 5.5 * 0.875, 2))


async def quiz(database: Database, count: int) -> list[UUID]:
    specs = [TaskSpec(question=f"What is {n}?", answers=[f"w{n}"]) for n in range(count)]
    return (await tasks.store(database, LOCAL_TENANT, "quiz", specs)).ids


async def test_tasks_of_a_dataset_are_drawn_at_random_each_once(bench: Bench) -> None:
    stored = await quiz(bench.database, 9)
    collect = CollectConfig(role="planner", dataset="quiz")
    draws = [await drawn(bench.database, LOCAL_TENANT, collect, 4, seed) for seed in range(8)]
    assert all(len(set(draw)) == 4 and set(draw) <= set(stored) for draw in draws)
    assert len({tuple(draw) for draw in draws}) > 4
    assert draws[3] == await drawn(bench.database, LOCAL_TENANT, collect, 4, 3)
    assert set(await drawn(bench.database, LOCAL_TENANT, collect, 50, 0)) == set(stored)
    with pytest.raises(InvalidInput, match="there is no dataset 'riddles'"):
        await drawn(bench.database, LOCAL_TENANT, CollectConfig(role="planner", dataset="riddles"), 4, 0)


async def test_tasks_of_worlds_come_from_one_world_a_draw_in_turn(bench: Bench) -> None:
    collect = CollectConfig(role="planner", worlds=("train-1@50", "train-2@50"), hops=(1, 1))
    for seed, world in ((4, "world:train-1@50"), (5, "world:train-2@50")):
        draw = await drawn(bench.database, LOCAL_TENANT, collect, 3, seed)
        assert {(await tasks.one(bench.database, LOCAL_TENANT, task)).dataset for task in draw} == {world}


@dataclass
class Idle:
    """Weights that stay as they are."""

    start: Path

    def load(self, folder: Path | None) -> None: ...

    async def read(
        self, database: Database, tenant: UUID, heads: Sequence[GroupHead], state: Mapping[str, Any]
    ) -> Read:
        return Read((), {}, 0)

    def step(self, read: Read, state: Mapping[str, Any], step: int, progress: float, said: Said) -> Stepped:
        return Stepped({}, {}, {})

    def save(self, folder: Path) -> None:
        folder.mkdir(parents=True)

    def export(self, folder: Path) -> None:
        shutil.copytree(self.start, folder)


def idle(config: TrainConfig, policies: Policies) -> Idle:
    return Idle(Path(policies.start.uri))


class Nobody:
    """Hears of nothing."""

    async def wake_all(self, runs: Sequence[UUID]) -> None: ...

    async def nudge(self, run: UUID) -> None: ...


async def no_engine(version: VersionRow) -> None:
    """Nothing has to answer."""


@asynccontextmanager
async def solving(owner_url: str, task: UUID) -> AsyncGenerator[None]:
    """Ends rollouts as soon as there are any: those of one task succeed, all others fail."""

    def end() -> None:
        with psycopg.connect(owner_url, autocommit=True) as owner:
            owner.execute(
                "update app.rollout o set outcome = 'answered', reward = (g.task_id = %s)::int, settled_at = now() "
                "from app.rollout_group g where g.id = o.group_id and g.state = 'open'",
                (task,),
            )
            owner.execute(
                "update app.rollout_group g set state = 'complete', completed_at = clock_timestamp() "
                "where state = 'open' "
                "and (select bool_and(settled_at is not null) from app.rollout where group_id = g.id)"
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


SHARP = CurriculumConfig(candidates=2, novelty=2.0, strength=0.5)
"""What was tried hardly comes again."""


async def test_a_job_collects_from_a_dataset_by_what_it_has_learned_of_its_tasks(bench: Bench) -> None:
    stored = await quiz(bench.database, 6)
    await bench.policy()
    collect = {"role": "planner", "dataset": "quiz", "group_size": 2, "curriculum": SHARP.model_dump()}
    data = {"groups_per_step": 3, "minimum_informative_groups": 0}
    job = await bench.job(collect=collect, steps=2, data=data, name="kept")
    collector = Collector(bench.database, Nobody(), installed(), no_engine)
    async with solving(bench.owner_url, stored[0]):
        done = await bench.run(job.id, with_room(bench, begin=idle, collect=collector.collected))
    assert (done.state, done.error, done.step, done.groups) == ("done", "", 2, 6)
    steps = await collected(bench.owner_url, job.id)
    assert [len(step) for step in steps] == [3, 3]
    config = config_of(job.config)
    assert config.collect is not None
    before = recorded(SHARP, {}, [a_head(task, *[float(task == stored[0])] * 2) for task in steps[0]])
    seed = job.seed * 1_000_003 + 4  # the first batch of the second step
    candidates = await drawn(bench.database, LOCAL_TENANT, config.collect, 6, seed)
    assert steps[1] == set(chosen(SHARP, before, candidates, 3, seed))
    assert steps[1] != set(chosen(SHARP, {}, candidates, 3, seed)), "what was learned has to show with this seed"
    async with bench.database.transaction(LOCAL_TENANT) as connection:
        table = (await training_jobs.state_of(connection, job.id))[CURRICULUM]
    assert table.keys() == {str(task) for task in steps[0] | steps[1]}
    assert all((entry["alpha"] > 1) == (task == str(stored[0])) for task, entry in table.items())


async def collected(owner_url: str, job: UUID) -> list[set[UUID]]:
    """Tasks by batch."""
    with psycopg.connect(owner_url) as owner:
        rows = owner.execute(
            "select array_agg(g.task_id) from app.rollout_group g join app.batch b on b.id = g.batch_id "
            "where g.tags @> array[%s] group by b.id order by b.id",
            (f"job:{job}",),
        ).fetchall()
    return [set(found) for (found,) in rows]
