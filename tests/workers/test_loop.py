"""The closed loop on real workers and the real engine, in miniature: what it makes and decides, and being cut short."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from offing.core.errors import InvalidInput
from offing.models.credentials import Destination
from offing.services.graphs import installed
from offing.storage.training_jobs import JobRow
from offing.world.compact import VOCABULARY
from offing_trainer.job.collecting import Collector
from offing_trainer.job.own_engine import OurEngine
from offing_trainer.job.process import run_one
from offing_trainer.job.publishing import hashes_of
from offing_trainer.job.running import Room
from offing_trainer.job.trainee import begin
from offing_trainer.loop import LoopRoom, closed_loop
from offing_trainer.loop_config import StartConfig, loop_config
from tests.engine.serving import serving
from tests.workers.collecting import Sql
from tests.workers.conftest import Platform, StartWorker

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

WITH_REJECTED = {"name": "policy-turns", "rejected": True}
"""A policy that has hardly learned anything writes little that its role can use; an entropy term moves it even so."""

SMALL: dict[str, Any] = {
    "name": "planner",
    "start": {
        "demonstrations": 24,
        "worlds": ["train-1@50"],
        "hops": [1, 1],
        "learning": {
            "steps": 4,
            "chain": {"select": []},
            "data": {"groups_per_step": 12, "passes": 2},
            "learner": {"learning_rate": 2e-3, "threads": 1},
        },
    },
    "collect": {
        "role": "planner",
        "form": "compact",
        "engines": {"all": "rules:world"},
        "worlds": ["train-2@50"],
        "hops": [1, 1],
        "turns": 3,
        "group_size": 2,
    },
    "train": {
        "algorithm": "flow-grpo",
        "steps": 2,
        "data": {"groups_per_step": 2, "minimum_informative_groups": 0},
        "chain": {"view": WITH_REJECTED, "regularise": [{"name": "entropy", "coefficient": 0.01}]},
        "learner": {"learning_rate": 1e-4, "threads": 1},
    },
    "evaluate": {"worlds": ["heldout-1@50"], "count": 8, "hops": [1, 1], "margin": 1.0},
}


@dataclass
class Lost(Exception):
    """The process is gone in the middle of a job."""


@pytest.fixture
async def room(platform: Platform, start_worker: StartWorker, tmp_path: Path) -> AsyncIterator[LoopRoom]:
    folder = tmp_path / "policies"
    folder.mkdir()
    with serving({}, "--policies", str(folder)) as engine:
        start_worker(OFFING_ENGINE_URL=engine.url)
        collector = Collector(platform.database, platform.hints, installed(), OurEngine(Destination(engine.url)))
        jobs = Room(platform.database, tmp_path, folder, begin, collect=collector.collected)

        async def run(job: UUID) -> JobRow:
            done = await run_one(jobs, job)
            assert done is not None
            return done

        yield LoopRoom(platform.tenant, collector, run, folder, made, hashes, lambda _: None)


def made(folder: Path, start: StartConfig, seed: int) -> None:
    from offing_engine.small import new_policy

    new_policy(folder, VOCABULARY, size=start.size, seed=seed)


def hashes(folder: Path) -> tuple[str, str, str]:
    found = hashes_of(folder, None)
    return found.weights, found.tokenizer, found.template


async def test_a_loop_from_nothing_trains_measures_and_promotes_and_done_again_makes_nothing(
    room: LoopRoom, sql: Sql
) -> None:
    config = loop_config(
        SMALL | {"compare": {"algorithm": "sft", "steps": 1, "chain": {"select": [], "view": WITH_REJECTED}}}
    )
    closed = await closed_loop(room, config)
    assert [(one.mode, len(one.rewards)) for one in closed.after] == [("sampled", 8), ("greedy", 8)]
    assert sql("select name, version, state from app.policy_version where state = 'active'") == [
        ("planner", (closed.after if closed.promoted else closed.before)[0].version.version, "active")
    ]
    sampled = sql(
        "select b.name, array_agg(distinct t.policy) from app.batch b join app.rollout_group g on g.batch_id = b.id "
        "join app.rollout o on o.group_id = g.id join app.turn t on t.run_id = o.run_id "
        "where t.policy <> '' and 'loop' = any(g.tags) group by b.name order by b.name"
    )
    start = closed.before[0].version
    assert sampled == [
        ("planner step 1", [f"planner@{start.version}"]),
        ("planner step 2", [f"planner@{start.version + 1}"]),
    ]
    ledger = "select count(*) from app.ledger l join app.train_job j on j.id = l.train_run where j.kind = 'loop'"
    assert sql(ledger) == [(8,)], "two groups of two rollouts, for two steps"
    tables = ("batch", "train_job", "evaluation", "policy_version")
    counts = "select " + ", ".join(f"(select count(*) from app.{table})" for table in tables)
    before = sql(counts)
    again = await closed_loop(room, config)
    assert again.after[0].rewards == closed.after[0].rewards
    assert sql(counts) == before


async def test_a_loop_that_was_lost_between_collecting_and_training_uses_the_batch_that_it_has(
    room: LoopRoom, sql: Sql
) -> None:
    config, collected = loop_config(SMALL), room.collector.collected

    async def lost(*given: Any) -> Any:
        await collected(*given)
        raise Lost

    async def run(job: UUID) -> JobRow:
        return await _run(room, job, lost)

    broken = replace(room, run=run)
    with pytest.raises(Lost):
        await closed_loop(broken, config)
    batches = sql("select count(*) from app.batch where name = 'planner step 1'")
    sql("update app.train_job set lease_until = null")
    await closed_loop(room, config)
    assert batches == sql("select count(*) from app.batch where name = 'planner step 1'") == [(1,)]


@pytest.mark.parametrize(
    "change",
    [{"start": {**SMALL["start"], "demonstrations": 25}}, {"collect": {**SMALL["collect"], "turns": 2}}],
    ids=["other demonstrations", "other turns"],
)
async def test_a_loop_with_another_setting_makes_what_it_needs_anew_and_the_same_loop_goes_on(
    room: LoopRoom, sql: Sql, change: dict[str, Any]
) -> None:
    async def lost(_job: UUID) -> JobRow:
        raise Lost

    broken, batches = replace(room, run=lost), "select count(*) from app.batch where name = 'demonstrations'"
    for config, made in ((SMALL, 1), (SMALL, 1), (SMALL | change, 2), (SMALL, 2), (SMALL | change, 2)):
        with pytest.raises(Lost):
            await closed_loop(broken, loop_config(config))
        assert sql(batches) == [(made,)]


async def test_a_start_of_another_size_is_made_anew(room: LoopRoom, sql: Sql) -> None:
    async def lost(_job: UUID) -> JobRow:
        raise Lost

    for size in ("tiny", "small", "tiny"):
        with pytest.raises(Lost):
            await closed_loop(replace(room, run=lost), loop_config(SMALL | {"start": {**SMALL["start"], "size": size}}))
    assert sql("select count(*) from app.policy_version") == [(2,)]


async def _run(room: LoopRoom, job: UUID, collect: Any) -> JobRow:
    jobs = Room(room.collector.database, room.policies.parent, room.policies, begin, collect=collect)
    done = await run_one(jobs, job)
    assert done is not None
    return done


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"collect": {"role": "planner"}}, "collect"),
        ({"train": 3}, "train"),
        ({"evaluate": {"count": 0}}, "evaluate.count"),
        ({"nonsense": 1}, "nonsense"),
    ],
)
def test_a_loop_that_cannot_be_names_the_entry(change: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        loop_config(SMALL | change)
    assert caught.value.field == field
