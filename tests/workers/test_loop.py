"""The closed loop on real workers and the real engine, in miniature: what it makes and decides, and being cut short."""

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from offing.core.errors import InvalidInput
from offing.models.credentials import EngineEndpoint
from offing.services.graphs import open_registry
from offing.storage.training_jobs import TrainingJobRow
from offing_trainer.job.engine_deployment import ManagedEngine
from offing_trainer.job.job_runner import JobContext
from offing_trainer.job.pipeline_trainer import open_trainer
from offing_trainer.job.process import run_one_job
from offing_trainer.job.rollout_collector import RolloutCollector
from offing_trainer.loop import LoopContext, run_training_loop
from offing_trainer.loop_config import StartConfig, parse_loop_config
from offing_world.compact_notation import VOCABULARY
from tests.engine.engine_server import serving
from tests.workers.conftest import Platform, StartWorker
from tests.workers.rollout_batches import Sql

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

WITH_REJECTED = {"name": "policy-turns", "include_rejected": True}
"""A policy that has hardly learned anything writes little that its role can use; an entropy term moves it even so."""

SMALL: dict[str, Any] = {
    "name": "planner",
    "start": {
        "demonstration_count": 24,
        "worlds": ["train-1@50"],
        "hops": [1, 1],
        "sft": {
            "max_steps": 4,
            "pipeline": {"selectors": []},
            "data": {"groups_per_step": 12, "data_passes": 2},
            "learner": {"learning_rate": 2e-3, "cpu_threads": 1},
        },
    },
    "collect": {
        "role": "planner",
        "prompt_format": "compact",
        "engines": {"all": "rules:world"},
        "worlds": ["train-2@50"],
        "hops": [1, 1],
        "max_turns": 3,
        "group_size": 2,
    },
    "train": {
        "algorithm": "flow-grpo",
        "max_steps": 2,
        "data": {"groups_per_step": 2, "min_informative_groups": 0},
        "pipeline": {"view": WITH_REJECTED, "regularizers": [{"name": "entropy", "coefficient": 0.01}]},
        "learner": {"learning_rate": 1e-4, "cpu_threads": 1},
    },
    "evaluate": {"worlds": ["heldout-1@50"], "task_count": 8, "hops": [1, 1], "margin": 1.0},
}


@dataclass
class WorkerLostError(Exception):
    """The process is gone in the middle of a job."""


@pytest.fixture
async def context(platform: Platform, start_worker: StartWorker, tmp_path: Path) -> AsyncIterator[LoopContext]:
    folder = tmp_path / "policies"
    folder.mkdir()
    with serving({}, "--policy-dir", str(folder)) as engine:
        start_worker(OFFING_ENGINE_URL=engine.url)
        collector = RolloutCollector(
            platform.database, platform.notifier, open_registry(), ManagedEngine(EngineEndpoint(engine.url))
        )
        jobs = JobContext(platform.database, tmp_path, folder, open_trainer, collect_groups=collector.collect_step)

        async def run(job_id: UUID) -> TrainingJobRow:
            done = await run_one_job(jobs, job_id)
            assert done is not None
            return done

        yield LoopContext(platform.tenant, collector, run, folder, make_start, lambda _: None)


def make_start(folder: Path, start: StartConfig, seed: int) -> None:
    from offing_engine.random_policy import create_random_policy

    create_random_policy(folder, VOCABULARY, size=start.model_size, seed=seed)


async def test_a_loop_from_nothing_trains_measures_and_promotes_and_done_again_makes_nothing(
    context: LoopContext, sql: Sql
) -> None:
    config = parse_loop_config(
        SMALL | {"compare": {"algorithm": "sft", "max_steps": 1, "pipeline": {"selectors": [], "view": WITH_REJECTED}}}
    )
    progress = list[str]()
    closed = await run_training_loop(replace(context, show_progress=progress.append), config)
    assert any(re.fullmatch(r"demonstrations: \d+ of 24 rollouts(, .+ left)?", text) for text in progress)
    assert any(re.match(r"evaluating planner@\d+, sampled: \d of 8 rollouts", text) for text in progress)
    assert [(one.mode, len(one.rewards)) for one in closed.after] == [("sampled", 8), ("greedy", 8)]
    assert sql("select name, version, state from app.policy_version where state = 'active'") == [
        ("planner", (closed.after if closed.promoted else closed.before)[0].version.version, "active")
    ]
    sampled = sql(
        "select b.name, array_agg(distinct t.policy) from app.rollout_batch b join app.rollout_group g "
        "on g.batch_id = b.id join app.rollout o on o.group_id = g.id join app.role_call t on t.run_id = o.run_id "
        "where t.policy <> '' and 'loop' = any(g.tags) group by b.name order by b.name"
    )
    start = closed.before[0].version
    stored = "select avg((outcome = 'violated')::int)::float8 from app.evaluation_result r join app.evaluation e "
    stored += "on e.id = r.evaluation_id where e.policy_version_id = %s and e.mode = 'sampled'"
    assert sql(stored, start.id) == [(closed.before[0].violation_fraction,)]
    assert sampled == [
        ("planner step 1", [f"planner@{start.version}"]),
        ("planner step 2", [f"planner@{start.version + 1}"]),
    ]
    ledger = "select count(*) from app.ledger l join app.training_job j on j.id = l.job_id where j.kind = 'loop'"
    assert sql(ledger) == [(8,)], "two groups of two rollouts, for two steps"
    tables = ("rollout_batch", "training_job", "evaluation", "policy_version")
    counts = "select " + ", ".join(f"(select count(*) from app.{table})" for table in tables)
    before = sql(counts)
    again = await run_training_loop(context, config)
    assert again.after[0].rewards == closed.after[0].rewards
    assert sql(counts) == before


async def test_a_loop_that_crashed_between_collecting_and_training_uses_the_batch_that_it_has(
    context: LoopContext, sql: Sql
) -> None:
    config, collected = parse_loop_config(SMALL), context.collector.collect_step

    async def lose_lease(*inputs: Any) -> Any:
        await collected(*inputs)
        raise WorkerLostError

    async def run(job_id: UUID) -> TrainingJobRow:
        return await _run(context, job_id, lose_lease)

    broken = replace(context, run_job=run)
    with pytest.raises(WorkerLostError):
        await run_training_loop(broken, config)
    batches = sql("select count(*) from app.rollout_batch where name = 'planner step 1'")
    sql("update app.training_job set lease_until = null")
    await run_training_loop(context, config)
    assert batches == sql("select count(*) from app.rollout_batch where name = 'planner step 1'") == [(1,)]


@pytest.mark.parametrize(
    "change",
    [{"start": {**SMALL["start"], "demonstration_count": 25}}, {"collect": {**SMALL["collect"], "max_turns": 2}}],
    ids=["other demonstrations", "other turns"],
)
async def test_a_loop_with_another_setting_makes_what_it_needs_anew_and_the_same_loop_continues(
    context: LoopContext, sql: Sql, change: dict[str, Any]
) -> None:
    async def lose_lease(_job_id: UUID) -> TrainingJobRow:
        raise WorkerLostError

    broken, batches = (
        replace(context, run_job=lose_lease),
        "select count(*) from app.rollout_batch where name = 'demonstrations'",
    )
    for config, created in ((SMALL, 1), (SMALL, 1), (SMALL | change, 2), (SMALL, 2), (SMALL | change, 2)):
        with pytest.raises(WorkerLostError):
            await run_training_loop(broken, parse_loop_config(config))
        assert sql(batches) == [(created,)]


async def test_a_start_of_another_size_is_made_anew(context: LoopContext, sql: Sql) -> None:
    async def lose_lease(_job_id: UUID) -> TrainingJobRow:
        raise WorkerLostError

    for size in ("tiny", "small", "tiny"):
        with pytest.raises(WorkerLostError):
            await run_training_loop(
                replace(context, run_job=lose_lease),
                parse_loop_config(SMALL | {"start": {**SMALL["start"], "model_size": size}}),
            )
    assert sql("select count(*) from app.policy_version") == [(2,)]


async def _run(context: LoopContext, job_id: UUID, collect: Any) -> TrainingJobRow:
    jobs = JobContext(
        context.collector.database, context.policy_dir.parent, context.policy_dir, open_trainer, collect_groups=collect
    )
    done = await run_one_job(jobs, job_id)
    assert done is not None
    return done


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"collect": {"role": "planner"}}, "collect"),
        ({"train": 3}, "train"),
        ({"evaluate": {"task_count": 0}}, "evaluate.task_count"),
        ({"nonsense": 1}, "nonsense"),
    ],
)
def test_a_loop_that_cannot_be_names_the_entry(change: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_loop_config(SMALL | change)
    assert caught.value.field == field
