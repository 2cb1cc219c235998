"""The training loop: initial policy, training on its own rollouts, evaluation, promotion.

Each part is a rollout batch with an idempotency key or a training job that is found by its
configuration. An interrupted loop therefore continues where it was.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal
from uuid import UUID

from offing.core.errors import Conflict, Unavailable
from offing.core.judge_budget import NO_JUDGE_LIMIT
from offing.core.model import EngineConfig, parse_engine
from offing.core.run import Budget
from offing.core.time_left import describe_time_left, estimate_seconds_left
from offing.core.trajectory import Outcome
from offing.models.policy_folder import hash_policy
from offing.services import policies, promotion, tasks, training_jobs
from offing.services.graphs import get_graph
from offing.services.policies import PolicyRegistration
from offing.services.promotion import EvaluationSetup
from offing.services.promotion_gate import GateRules, merge_guards
from offing.services.rollouts import BatchRequest
from offing.services.scorer_pins import build_scorers
from offing.storage import evaluations, policy_versions
from offing.storage.evaluations import EvaluationResultRow
from offing.storage.policy_versions import PolicyVersionRow
from offing.storage.training_jobs import TrainingJobRow
from offing.tools.environment import TaskSample
from offing_trainer.config import parse_config
from offing_trainer.job.rollout_collector import ProgressCallback, RolloutCollector, build_other_engine_configs
from offing_trainer.loop_config import EvaluateConfig, LoopConfig, StartConfig
from offing_trainer.loop_costs import CostRecorder, StageCost

JobRunner = Callable[[UUID], Awaitable[TrainingJobRow]]
"""Runs a training job to its end."""


SamplingMode = Literal["sampled", "greedy"]

SAMPLING_MODES: tuple[SamplingMode, ...] = ("sampled", "greedy")

MAX_ATTEMPTS = 6
"""Maximum number of attempts of a loop whose servers become unavailable.
The servers are restarted equally often.
"""

RETRY_DELAY_SECONDS = 1.0
"""Delay before the next attempt."""


@dataclass(frozen=True, slots=True)
class VersionScore:
    """Rewards of a version on the evaluation tasks."""

    version: PolicyVersionRow
    mode: SamplingMode
    rewards: Mapping[UUID, float]
    """Reward by task. Tasks with infrastructure failures are left out."""
    violation_fraction: float | None
    """Fraction of the rollouts with a reward that violated a rule of the graph. `None` means that none has a reward."""

    @property
    def mean_reward(self) -> float:
        """Mean reward."""
        return sum(self.rewards.values()) / len(self.rewards) if self.rewards else 0.0

    def describe(self) -> str:
        """Return text such as `mean reward 0.155 on 200 tasks, 0.5% violated a rule of the graph`."""
        if self.violation_fraction is None:
            return "no rollout has a reward"
        return (
            f"mean reward {self.mean_reward:.3f} on {len(self.rewards)} tasks, "
            f"{self.violation_fraction:.1%} violated a rule of the graph"
        )


@dataclass(frozen=True, slots=True)
class LoopResult:
    """Result of a training loop. Each tuple has the sampled score, then the greedy one."""

    before: tuple[VersionScore, ...]
    after: tuple[VersionScore, ...]
    comparison: tuple[VersionScore, ...]
    """Scores of the `compare` job on the same rollouts. Empty if there is none."""
    promoted: bool
    rejection_reason: str
    """Empty if the version was promoted."""
    costs: tuple[StageCost, ...] = ()
    """What each stage has cost, in order."""


@dataclass(frozen=True, slots=True)
class LoopContext:
    """Resources of a training loop."""

    tenant_id: UUID
    collector: RolloutCollector
    run_job: JobRunner
    policy_dir: Path
    """Directory with the folders of policy versions."""
    create_policy: Callable[[Path, StartConfig, int], None]
    """Writes a policy with random weights to a folder, drawn from a seed."""
    report: Callable[[str], None]
    show_progress: Callable[[str], None] = lambda text: None
    """Called often with text about rollouts that the loop waits for."""
    read_clock: Callable[[], float] = time.monotonic
    """Returns seconds that only increase."""


async def run_training_loop_with_retry(context: LoopContext, config: LoopConfig) -> LoopResult:
    """Run a training loop. If a server becomes unavailable, retry and continue with the finished parts."""
    for remaining_attempts in reversed(range(MAX_ATTEMPTS)):
        try:
            return await run_training_loop(context, config)
        except Unavailable as error:
            if not remaining_attempts:
                raise
            context.report(f"{error}; trying again")
            await asyncio.sleep(RETRY_DELAY_SECONDS)
    raise AssertionError("the last attempt returns or raises")


async def run_training_loop(context: LoopContext, config: LoopConfig) -> LoopResult:
    """Run a training loop. Call it again to continue after an error.

    Raises the errors of its parts, and Conflict for a failed job.
    """
    costs = CostRecorder(context.collector.database, context.tenant_id, context.read_clock, context.report)
    start = await _prepare_start(context, config)
    context.report(f"the initial version is {start.label}")
    await costs.end_stage("start", f"{config.name}/{config.seed}/demonstrations/")
    before = await _evaluate(context, config, start)
    await costs.end_stage("evaluation of the start", f"{start.id}/")
    await _activate_first_version(context, start)
    trained, job = await _train(context, config, start)
    await costs.end_stage("training", f"{job}/")
    after = await _evaluate(context, config, trained)
    await costs.end_stage("evaluation of the result", f"{trained.id}/")
    rejection_reason = await _promote(context, config, trained)
    context.report(rejection_reason or f"{trained.label} is now active")
    compared = await _train_comparison(context, config, start, job) if config.compare else ()
    return LoopResult(before, after, compared, not rejection_reason, rejection_reason, tuple(costs.stages))


async def _activate_first_version(context: LoopContext, start: PolicyVersionRow) -> None:
    """Activate the initial version if the name has no active version."""
    database = context.collector.database
    async with database.transaction(context.tenant_id) as connection:
        active = await policy_versions.find_version_in_state(connection, start.name, "active")
    if active is None:
        await promotion.promote(database, context.tenant_id, start.label)


async def _promote(context: LoopContext, config: LoopConfig, trained: PolicyVersionRow) -> str:
    """Promote the version if it passes the gate. Returns the reason of a rejection, else an empty string."""
    try:
        rules = GateRules(config.evaluate.margin, config.evaluate.confident, merge_guards(config.evaluate.guards()))
        await promotion.promote(
            context.collector.database, context.tenant_id, trained.label, rules,
            dataset=_dataset_name(config.evaluate), mode="sampled", metric=config.evaluate.metric or None,
        )  # fmt: skip
    except Conflict as error:
        return str(error)
    return ""


async def _train_comparison(
    context: LoopContext, config: LoopConfig, start: PolicyVersionRow, job_id: UUID
) -> tuple[VersionScore, ...]:
    """Train another policy on the rollouts that a job collected, from the same initial version."""
    data = {"roles": [config.collect.role], "tags": [f"job:{job_id}"], **config.compare.get("data", {})}
    name = f"{config.name}-compared"
    tables = {**config.compare, "policy": start.label, "name": name, "data": data}
    version, _ = await _run_training_job(context, tables, config.seed)
    return await _evaluate(context, config, version)


async def _prepare_start(context: LoopContext, config: LoopConfig) -> PolicyVersionRow:
    """Return the initial version. If none is configured, train one on demonstrations by SFT."""
    if config.policy:
        return await policies.get_version_by_name(context.collector.database, context.tenant_id, config.policy)
    blank = await _register_random_policy(context, config)
    batch = await _collect_demonstrations(context, config)
    context.report("imitating")
    tables = {
        "algorithm": "sft",
        **config.start.sft,
        "policy": blank.label,
        "name": config.name,
        "data": {
            "rollout_batches": [str(batch)],
            "roles": [config.collect.role],
            "max_version_lag": 0,
            **config.start.sft.get("data", {}),
        },
    }
    return (await _run_training_job(context, tables, config.seed))[0]


async def _register_random_policy(context: LoopContext, config: LoopConfig) -> PolicyVersionRow:
    """Register a version with random weights. The same seed gives the same weights and the same version."""
    config_hash = _short_hash(f"{config.start.tokenizer}/{config.start.model_size}")
    folder = context.policy_dir / f".start-{config.name}-{config.seed}-{config_hash}"
    if not folder.exists():
        await asyncio.to_thread(context.create_policy, folder, config.start, config.seed)
    hashes = await asyncio.to_thread(hash_policy, folder, None)
    registration = PolicyRegistration(name=config.name, kind="full", uri=str(folder.resolve()), hashes=hashes)
    version, _ = await policies.register_version(context.collector.database, context.tenant_id, registration)
    return version


async def _collect_demonstrations(context: LoopContext, config: LoopConfig) -> UUID:
    start, collect = config.start, config.collect
    sample = TaskSample(
        "", start.demonstration_count, start.hops, collect.question_kinds or None, config.seed, collect.compositions
    )
    task_ids = await _draw_tasks(context, collect.dataset, start.worlds, sample)
    context.report(f"{len(task_ids)} demonstrations")
    demonstrator = parse_engine(start.engine).model_copy(update={"prompt_format": collect.prompt_format})
    return await _run_batch(context, config, task_ids, demonstrator, "demonstrations", ("loop",))


async def _evaluate(context: LoopContext, config: LoopConfig, version: PolicyVersionRow) -> tuple[VersionScore, ...]:
    """Evaluate a version in both modes, with one rollout per task.

    All versions are evaluated on the same tasks with the same seeds.
    """
    await context.collector.deploy_version(context.tenant_id, version)
    evaluate, kinds = config.evaluate, config.collect.question_kinds or None
    sample = TaskSample("", evaluate.task_count, evaluate.hops, kinds, evaluate.seed, evaluate.compositions)
    task_ids = await _draw_tasks(context, evaluate.dataset, evaluate.worlds, sample)
    return tuple([await _evaluate_mode(context, config, version, mode, task_ids) for mode in SAMPLING_MODES])


async def _evaluate_mode(
    context: LoopContext, config: LoopConfig, version: PolicyVersionRow, mode: SamplingMode, task_ids: Sequence[UUID]
) -> VersionScore:
    collector, collect = context.collector, config.collect
    setup = EvaluationSetup(
        dataset=_dataset_name(config.evaluate), task_ids=task_ids, graph=collect.graph, role=collect.role,
        greedy=mode == "greedy", seed=config.evaluate.seed,
        prompt_format=collect.prompt_format, max_tokens=collect.max_tokens,
        budget=Budget(max_turns=collect.max_turns),
        engines=build_other_engine_configs(get_graph(collector.graphs, collect.graph), collect),
        scorers=build_scorers(config.evaluation_scorers),
        judge_budget=config.evaluate.judge_budget.to_budget() if config.evaluate.judge_budget else NO_JUDGE_LIMIT,
    )  # fmt: skip
    results = await _find_results(context, version, setup)
    if not results:
        label, database = version.label, collector.database
        context.report(f"evaluating {label}, {mode}")
        created = await promotion.start_evaluation(
            database,
            collector.notifier,
            context.tenant_id,
            label,
            setup,
            graphs=collector.graphs,
            servers=collector.servers,
            idempotency_key=_evaluation_key(version, setup),
        )
        await collector.wait_for_batch(
            context.tenant_id, created.batch.id, version, _progress_of_batch(context, f"evaluating {label}, {mode}")
        )
        await promotion.store_evaluation(database, context.tenant_id, label, created.batch.id, setup)
        results = await _find_results(context, version, setup)
    score = _compute_score(version, mode, results)
    context.report(f"{version.label} {mode}: {score.describe()}")
    return score


def _compute_score(
    version: PolicyVersionRow, mode: SamplingMode, results: Sequence[EvaluationResultRow]
) -> VersionScore:
    scored = [row for row in results if row.reward is not None]
    violated = sum(row.outcome == Outcome.VIOLATED for row in scored)
    rewards = {row.task_id: row.reward for row in scored if row.reward is not None}
    return VersionScore(version, mode, rewards, violated / len(scored) if scored else None)


def _evaluation_key(version: PolicyVersionRow, setup: EvaluationSetup) -> str:
    """Return the idempotency key of an evaluation, so that an interrupted one continues."""
    return f"{version.id}/{sha256(repr(setup).encode()).hexdigest()}"


async def _find_results(
    context: LoopContext, version: PolicyVersionRow, setup: EvaluationSetup
) -> Sequence[EvaluationResultRow]:
    """Find the results of an evaluation on these tasks. Empty if there are none."""
    async with context.collector.database.transaction(context.tenant_id) as connection:
        for one in await evaluations.list_evaluations(connection, version.id, setup.dataset, setup.mode):
            results = await evaluations.list_results(connection, one.id)
            if one.seed == setup.seed and {row.task_id for row in results} == set(setup.task_ids):
                return results
    return ()


def _dataset_name(evaluate: EvaluateConfig) -> str:
    return evaluate.dataset or "world:" + "+".join(evaluate.worlds)


async def _train(context: LoopContext, config: LoopConfig, start: PolicyVersionRow) -> tuple[PolicyVersionRow, UUID]:
    """Train on collected rollouts. Returns the new version and the id of the job."""
    collect = config.collect.model_dump(mode="json", exclude_defaults=True)
    data = {"roles": [config.collect.role], **config.train.get("data", {})}
    tables = {**config.train, "policy": start.label, "name": config.name, "collect": collect, "data": data}
    return await _run_training_job(context, tables, config.seed)


async def _run_training_job(
    context: LoopContext, tables: Mapping[str, Any], seed: int
) -> tuple[PolicyVersionRow, UUID]:
    """Run a training job of this configuration. Returns its version and its id.

    An existing job with this configuration is continued.
    """
    learner: dict[str, Any] = tables.get("learner", {})
    tables = {**tables, "learner": {**learner, "seed": seed}}
    parse_config(tables)
    database = context.collector.database
    job = await training_jobs.find_same_job(database, context.tenant_id, tables)
    if job is None:
        job = await training_jobs.create_job(
            database, context.tenant_id, tables, kind="loop" if "collect" in tables else "train"
        )
    if job.state in ("paused", "failed"):
        await training_jobs.resume_job(database, context.tenant_id, job.id)
    if job.state != "done":
        job = await context.run_job(job.id)
    if job.state != "done" or job.produced_version_id is None:
        remedy = "Fix the cause. Then run the same command again to continue."
        reason = (job.error or job.stop_reason).removesuffix(".")
        raise Conflict(f"Training job {job.id} is {job.state}: {reason}.", remedy)
    return await policies.get_version(database, context.tenant_id, job.produced_version_id), job.id


async def _draw_tasks(context: LoopContext, dataset: str, worlds: Sequence[str], sample: TaskSample) -> list[UUID]:
    """Draw random tasks of a stored dataset, or store tasks of worlds, which provide about as many each.

    `sample` says how many and which, for each of the worlds. Raises InvalidInput for a dataset without tasks.
    """
    database, tenant_id = context.collector.database, context.tenant_id
    if dataset:
        return await tasks.list_dataset_task_ids(database, tenant_id, dataset, sample.count, seed=sample.seed)
    task_ids = list[UUID]()
    for nth, world in enumerate(worlds):
        if count := _split_evenly(sample.count, len(worlds), nth):
            part = replace(sample, spec=world, count=count)
            task_ids += await tasks.store_sampled_tasks(database, tenant_id, part)
    return task_ids


async def _run_batch(
    context: LoopContext,
    config: LoopConfig,
    task_ids: Sequence[UUID],
    engine_config: EngineConfig,
    name: str,
    tags: Sequence[str],
) -> UUID:
    """Run one rollout per task with `engine_config` for the trained role, and wait for all of them."""
    collect, collector = config.collect, context.collector
    request = BatchRequest(
        graph=collect.graph,
        task_ids=task_ids,
        group_size=1,
        engines={
            **build_other_engine_configs(get_graph(collector.graphs, collect.graph), collect),
            collect.role: engine_config,
        },
        scorers=build_scorers(collect.scorers),
        budget=Budget(max_turns=collect.max_turns),
        attempts=collect.max_attempts,
        seed=config.seed,
        tags=tags,
        name=name,
    )
    request = replace(request, idempotency_key=_batch_key(config, name, request))
    on_progress = _progress_of_batch(context, name)
    return (await collector.run_batch(context.tenant_id, request, on_progress=on_progress)).batch.id


def _progress_of_batch(context: LoopContext, what: str) -> ProgressCallback:
    """Return a callback that shows text such as `demonstrations: 240 of 3,000 rollouts, about 3 minutes left`."""
    began: tuple[float, int] | None = None

    def show(done: int, total: int) -> None:
        nonlocal began
        now = context.read_clock()
        began = began or (now, done)  # an interrupted batch goes on with rollouts that are done
        seconds = [(now - began[0]) / (done - began[1])] if done > began[1] else []
        left = describe_time_left(estimate_seconds_left(seconds, total - done))
        context.show_progress(f"{what}: {done:,} of {total:,} rollouts{left and f', {left}'}")

    return show


def _batch_key(config: LoopConfig, name: str, request: BatchRequest) -> str:
    """Return an idempotency key from everything that determines the batch.

    The same loop continues with its batch. Other settings create a new one.
    """
    return f"{config.name}/{config.seed}/{name}/{_short_hash(repr(request))}"


def _short_hash(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:16]


def _split_evenly(total: int, parts: int, nth: int) -> int:
    """Return the nth part when `total` is divided as evenly as possible."""
    return total // parts + (nth < total % parts)
