"""From rated runs to a decision: tasks, rollouts, a training job and the gate, on real workers and the real engine.

The model is a stand-in: a policy with random weights that reads and writes compact notation. The runs of people are
answered by rule-based roles in a synthetic world. So this shows that the stages fit together, and not that a model
gets better.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from uuid import UUID

import pytest

from offing.core.model import EngineConfig
from offing.core.run import Budget, RunStatus
from offing.models.credentials import EngineEndpoint
from offing.models.policy_folder import hash_policy
from offing.services import policies, promotion, ratings, training_jobs, training_signals
from offing.services.graphs import open_registry
from offing.services.policies import PolicyRegistration
from offing.services.promotion import EvaluationSetup
from offing.services.promotion_gate import GateRules
from offing.services.rollouts import BatchRequest
from offing.services.run_tasks import TaskSet, TaskSetRequest, make_tasks_from_runs
from offing.services.runs import RunRequest
from offing.services.tasks import list_dataset_task_ids
from offing.storage import tenants
from offing.storage.policy_versions import PolicyVersionRow
from offing_trainer.job.engine_deployment import ManagedEngine
from offing_trainer.job.job_runner import JobContext
from offing_trainer.job.pipeline_trainer import open_trainer
from offing_trainer.job.process import run_one_job
from offing_trainer.job.rollout_collector import RolloutCollector
from offing_world.compact_notation import VOCABULARY
from offing_world.tasks import generate_tasks
from tests.engine.engine_server import serving
from tests.workers.conftest import Platform, StartWorker
from tests.workers.rollout_batches import Sql

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

WORLD = "train-2@50"
REST = {role: EngineConfig(engine="rules", model="world") for role in ("analyst", "executor", "verifier", "generator")}
ORACLE = {"planner": EngineConfig(engine="rules", model="oracle"), **REST}
BUDGET = Budget(max_turns=3)

COSTS = """
    select count(*), coalesce(sum(r.tokens), 0) from app.rollout o join app.run r on r.id = o.run_id
      join app.rollout_group g on g.id = o.group_id where g.batch_id = any(%s)
"""


@dataclass
class Stages:
    """What each stage has cost: seconds, rollouts and tokens of its rollouts."""

    sql: Sql
    started: float = field(default_factory=time.monotonic)
    costs: dict[str, tuple[float, int, int]] = field(default_factory=dict[str, tuple[float, int, int]])

    def end(self, name: str, batches: Sequence[UUID] = ()) -> None:
        ((rollouts, tokens),) = self.sql(COSTS, list(batches))
        self.costs[name] = (time.monotonic() - self.started, rollouts, int(tokens))
        self.started = time.monotonic()

    def show(self) -> None:
        for name, (seconds, rollouts, tokens) in self.costs.items():
            print(f"{name:<9} {seconds:6.1f} s  {rollouts:4} rollouts  {tokens:7} tokens")


async def ask_and_rate(platform: Platform, count: int) -> None:
    """Runs of people whose reports are rated good; the answer of the first is corrected, too."""
    for nth, task in enumerate(generate_tasks(WORLD, count=count, hops=(1, 2))):
        request = RunRequest(task.question, budget=Budget(max_turns=8), engines=ORACLE, scope=task.scope)
        run = await platform.ended((await platform.submit(request)).id)
        assert run.status is RunStatus.DONE
        rating = {"person": "ada", "sentence_id": None, "value": 1.0, "correction": ""}
        await ratings.rate_report(platform.database, platform.tenant, run.id, **rating)  # pyright: ignore[reportArgumentType]
        if nth == 0:
            right = (task.answers or ("not answerable",))[0]
            await training_signals.correct_answer(
                platform.database, platform.tenant, run.id, right, person="ada",
                text_origin=training_signals.TextOrigin.PERSON,
            )  # fmt: skip


async def make_tasks(platform: Platform) -> TaskSet:
    """The first split with tasks on both sides: ids of runs are random, and so are the sides."""
    async with platform.database.transaction(platform.tenant) as connection:
        await tenants.set_training_opt_in(connection, platform.tenant, True)
    for seed in range(50):
        request = TaskSetRequest("ours", held_out_fraction=0.4, seed=seed)
        task_set = await make_tasks_from_runs(
            platform.database, platform.tenant, request, person="ada", is_dry_run=True
        )
        if len(task_set.list_split("train")) >= 2 and task_set.list_split("held_out"):
            return await make_tasks_from_runs(platform.database, platform.tenant, request, person="ada")
    raise AssertionError(f"no seed has tasks on both sides: {task_set.left_out}")  # pyright: ignore[reportPossiblyUnboundVariable]


async def register_random_policy(platform: Platform, folder: Path) -> PolicyVersionRow:
    from offing_engine.random_policy import create_random_policy

    create_random_policy(folder, VOCABULARY, size="tiny", seed=0)
    registration = PolicyRegistration(name="planner", kind="full", uri=str(folder), hashes=hash_policy(folder, None))
    version, _ = await policies.register_version(platform.database, platform.tenant, registration)
    await promotion.promote(platform.database, platform.tenant, version.label)
    return version


async def evaluate(platform: Platform, collector: RolloutCollector, version: PolicyVersionRow) -> UUID:
    held_out = await list_dataset_task_ids(platform.database, platform.tenant, "ours-held-out", 99)
    setup = EvaluationSetup("ours-held-out", held_out, "agentflow", "planner", greedy=False,
                            prompt_format="compact", max_tokens=32, budget=BUDGET, engines=REST)  # fmt: skip
    await collector.deploy_version(platform.tenant, version)
    created = await promotion.start_evaluation(
        platform.database, collector.notifier, platform.tenant, version.label, setup, graphs=collector.graphs
    )
    await collector.wait_for_batch(platform.tenant, created.batch.id, version)
    await promotion.store_evaluation(platform.database, platform.tenant, version.label, created.batch.id, setup)
    return created.batch.id


async def test_rated_runs_become_tasks_rollouts_a_candidate_and_a_decision_of_the_gate(
    platform: Platform, start_worker: StartWorker, sql: Sql, tmp_path: Path
) -> None:
    stages, folder = Stages(sql), tmp_path / "policies"
    folder.mkdir()
    with serving({}, "--policy-dir", str(folder)) as engine:
        start_worker(OFFING_ENGINE_URL=engine.url)
        collector = RolloutCollector(
            platform.database, platform.notifier, open_registry(), ManagedEngine(EngineEndpoint(engine.url))
        )
        await ask_and_rate(platform, 12)
        stages.end("runs")
        task_set = await make_tasks(platform)
        stages.end("tasks")
        start = await register_random_policy(platform, folder / "start")
        await collector.deploy_version(platform.tenant, start)
        planner = EngineConfig(engine="policy", model=start.label, prompt_format="compact", max_tokens=32)
        train = await list_dataset_task_ids(platform.database, platform.tenant, "ours", 99)
        request = BatchRequest("agentflow", train, 2, engines={**REST, "planner": planner}, budget=BUDGET)
        batch = (await collector.run_batch(platform.tenant, replace(request, idempotency_key="ours"))).batch.id
        stages.end("rollouts", [batch])
        tables = {
            "algorithm": "flow-grpo", "policy": start.label, "name": "planner", "max_steps": 1,
            "data": {"rollout_batches": [str(batch)], "roles": ["planner"], "groups_per_step": len(train),
                     "min_informative_groups": 0},
            "pipeline": {"view": {"name": "policy-turns", "include_rejected": True},
                         "regularizers": [{"name": "entropy", "coefficient": 0.01}]},
            "learner": {"learning_rate": 1e-3, "cpu_threads": 1},
        }  # fmt: skip
        job = await training_jobs.create_job(platform.database, platform.tenant, tables, kind="train")
        done = await run_one_job(JobContext(platform.database, tmp_path, folder, open_trainer), job.id)
        assert done is not None
        assert (done.state, done.error) == ("done", "")
        assert done.produced_version_id is not None
        candidate = await policies.get_version(platform.database, platform.tenant, done.produced_version_id)
        stages.end("training")
        batches = [await evaluate(platform, collector, version) for version in (start, candidate)]
        result = await promotion.run_gate(
            platform.database, platform.tenant, candidate.label, GateRules(), dataset="ours-held-out", mode="sampled"
        )
        stages.end("gate", batches)
    stages.show()
    assert result is not None
    assert sql("select detail->>'compared' is not null from app.training_event where kind = 'gate'") == [(True,)]
    tasks = "select o.run_id from app.task_origin o join app.task t on t.id = o.task_id where t.dataset = %s"
    trained, held_out = ({id for (id,) in sql(tasks, name)} for name in ("ours", "ours-held-out"))
    assert trained | held_out == {task.run_id for task in task_set.tasks}
    assert not trained & held_out
    used = "select count(distinct g.task_id) from app.ledger l join app.rollout o on o.run_id = l.run_id " \
           "join app.rollout_group g on g.id = o.group_id"  # fmt: skip
    assert sql(used) == [(len(train),)], "the job read a rollout of each task"
    assert all(rollouts for name, (_, rollouts, _) in stages.costs.items() if name in ("rollouts", "gate"))
