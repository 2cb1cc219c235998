"""`offing loop` over tasks that were made from rated runs: from a start made from nothing to the gate's decision.

The runs of people are answered by rule-based roles in a synthetic world, and the policy has random weights at first. So
this shows that the stages fit together and what each has cost, and not that a model gets better.
"""

from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

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
from tests.workers.test_tasks_from_runs import ask_and_rate, make_tasks

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

LEARNER = {"learning_rate": 1e-3, "cpu_threads": 1}

TABLES: dict[str, Any] = {
    "name": "planner",
    "start": {
        "demonstration_count": 99,
        "sft": {
            "max_steps": 2,
            "pipeline": {"selectors": []},
            "data": {"groups_per_step": 4, "data_passes": 2},
            "learner": LEARNER,
        },
    },
    "collect": {
        "role": "planner",
        "prompt_format": "compact",
        "engines": {"all": "rules:world"},
        "dataset": "ours",
        "group_size": 2,
        "max_turns": 3,
        "max_tokens": 16,
    },
    "train": {
        "algorithm": "flow-grpo",
        "max_steps": 2,
        "data": {"groups_per_step": 2, "min_informative_groups": 0},
        "pipeline": {
            "view": {"name": "policy-turns", "include_rejected": True},
            "regularizers": [{"name": "entropy", "coefficient": 0.01}],
        },
        "learner": LEARNER,
    },
    "evaluate": {"dataset": "ours-held-out", "task_count": 99, "not_worse": {"tokens": "50%"}},
}


def create_start(folder: Path, start: StartConfig, seed: int) -> None:
    from offing_engine.random_policy import create_random_policy

    create_random_policy(folder, VOCABULARY, size=start.model_size, seed=seed)


async def test_a_loop_over_tasks_of_rated_runs_ends_with_a_decision_of_the_gate_and_shows_what_each_stage_costs(
    platform: Platform, start_worker: StartWorker, sql: Sql, tmp_path: Path
) -> None:
    folder, lines = tmp_path / "policies", list[str]()
    folder.mkdir()
    with serving({}, "--policy-dir", str(folder)) as engine:
        start_worker(OFFING_ENGINE_URL=engine.url)
        await ask_and_rate(platform, 12)
        task_set = await make_tasks(platform)
        collector = RolloutCollector(
            platform.database, platform.notifier, open_registry(), ManagedEngine(EngineEndpoint(engine.url))
        )
        jobs = JobContext(platform.database, tmp_path, folder, open_trainer, collect_groups=collector.collect_step)

        async def run_job(job_id: UUID) -> TrainingJobRow:
            done = await run_one_job(jobs, job_id)
            assert done is not None
            return done

        context = LoopContext(platform.tenant, collector, run_job, folder, create_start, lines.append)
        result = await run_training_loop(context, parse_loop_config(TABLES))

    train, held_out = len(task_set.list_split("train")), len(task_set.list_split("held_out"))
    assert [(one.mode, len(one.rewards)) for one in result.after] == [("sampled", held_out), ("greedy", held_out)]
    assert result.promoted == (not result.rejection_reason)
    trained = result.after[0].version.version
    state = sql("select state from app.policy_version where name = 'planner' and version = %s", trained)
    assert state == [("active" if result.promoted else "candidate",)]
    decided = "select detail->>'compared' is not null from app.training_event where kind = 'gate'"
    assert sql(decided) == [(True,)], "the gate has compared the candidate with the active version, task by task"
    costs = {one.name: one.rollouts.rollouts for one in result.costs}
    assert costs == {
        "start": train, "evaluation of the start": 2 * held_out, "training": 8, "evaluation of the result": 2 * held_out
    }  # fmt: skip
    assert all(one.describe() in lines for one in result.costs)
    used = "select distinct t.dataset from app.ledger l join app.rollout o on o.run_id = l.run_id " \
           "join app.rollout_group g on g.id = o.group_id join app.task t on t.id = g.task_id"  # fmt: skip
    assert sql(used) == [("ours",)], "no held-out task was trained on"
