"""The execution of a job: select groups, load, train, save, commit; then export and register.

A step counts when its transaction commits, and its checkpoint is on disk before that. The next
claim loads the checkpoint of the last committed step and continues from the database alone, so the
job ends with the same weights as without interruption. All work on weights runs on one thread,
while the event loop renews the lease.
"""

import asyncio
import logging
import math
import shutil
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

from offing.cancellation import run_to_completion
from offing.core.errors import InvalidInput, LeaseLostError, OffingError, Unavailable
from offing.services import policy_files
from offing.services.training_job_lease import hold_lease
from offing.storage import training_events, training_groups, training_jobs, training_metrics
from offing.storage.policy_versions import PolicyVersionRow
from offing.storage.pool import Database
from offing.storage.training_groups import GroupQuery, GroupSummary
from offing.storage.training_jobs import CommittedStep, JobFencingToken, TrainingJobRow
from offing_trainer.config import TrainConfig, parse_config
from offing_trainer.job import curriculum, group_selection, publication
from offing_trainer.job.checkpoints import (
    find_checkpoint,
    job_folder,
    prune_checkpoints,
    remove_checkpoints,
    step_folder,
)
from offing_trainer.job.contract import JobTrainer, PhaseCallback, TrainingStepResult
from offing_trainer.job.group_query import build_group_query
from offing_trainer.job.group_selection import GroupSelection, StepSize
from offing_trainer.job.guards import BASELINE_METRICS, GuardViolation, find_violation
from offing_trainer.job.lineage import JobPolicies, load_job_policies
from offing_trainer.job.metric_sinks import CLOSE_TIMEOUT_SECONDS, MetricWriter, SinkContext, build_sink_factories
from offing_trainer.job.publication import Registration
from offing_trainer.job.step_timer import StepTimer

log = logging.getLogger("offing.trainer")

VISIBILITY_DELAY = timedelta(seconds=1)
"""How long a group may take to become visible after its timestamp."""

GROUP_PAGE_SIZE = 64
"""Number of groups per query."""

MAX_GROUPS_FACTOR = 4
"""See `config.DataConfig.max_groups_per_step`."""


ThreadRunner = Callable[[Callable[[], Any]], Awaitable[Any]]


TrainerFactory = Callable[[TrainConfig, JobPolicies], JobTrainer]
"""Opens the policy's weights, which is slow."""


GroupCollector = Callable[
    [UUID, TrainingJobRow, TrainConfig, PolicyVersionRow, PhaseCallback], Awaitable[Sequence[GroupSummary]]
]
"""Collects the groups of a job's next step with a policy version. See `rollout_collector`."""


@dataclass(frozen=True, slots=True)
class JobContext:
    """Resources of the process for its jobs."""

    database: Database
    data_dir: Path
    policy_dir: Path
    """Directory with the folders of policy versions."""
    open_trainer: TrainerFactory
    on_phase: Callable[[TrainingJobRow, str, Mapping[str, float]], None] = lambda job, phase, metrics: None
    """Called with the current phase of a job, and with the metrics of a committed step."""
    lease_seconds: float = 60.0
    """How long a claim holds without a heartbeat."""
    collect_groups: GroupCollector | None = None
    """`None` means that jobs train on stored rollouts only."""
    build_sink_factories: Callable[[Sequence[str], SinkContext], Sequence[Callable[[], Any]]] = build_sink_factories
    sink_close_timeout_seconds: float = CLOSE_TIMEOUT_SECONDS


@dataclass(slots=True)
class _JobProgress:
    """Progress of a running job."""

    context: JobContext
    fencing_token: JobFencingToken
    job: TrainingJobRow
    config: TrainConfig
    job_policies: JobPolicies
    trainer: JobTrainer
    query: GroupQuery
    group_count: int
    plugin_state: Mapping[str, Any]
    sinks: MetricWriter
    first_metrics: Mapping[str, float] = field(default_factory=dict[str, float])
    """The first value of each of `BASELINE_METRICS` in the job, for the guards."""
    timer: StepTimer = field(default_factory=lambda: StepTimer(time.monotonic))

    @property
    def folder(self) -> Path:
        return job_folder(self.context.data_dir, self.fencing_token.job_id)

    def set_phase(self, phase: str, metrics: Mapping[str, float] | None = None) -> None:
        self.timer.enter_phase(phase)
        self.context.on_phase(self.job, phase, metrics or {})


async def run_job(context: JobContext, fencing_token: JobFencingToken) -> TrainingJobRow:
    """Run a claimed job until it ends, pauses or fails, and record the result.

    Raises LeaseLostError if another process has claimed the job.
    """
    thread = ThreadPoolExecutor(1, "offing-learner")
    try:
        async with hold_lease(context.database, fencing_token, context.lease_seconds):
            return await _run_or_fail(context, fencing_token, _thread_runner(thread))
    except asyncio.CancelledError:
        await run_to_completion(_requeue(context, fencing_token, "its process was stopped"))
        raise
    except Unavailable:
        # If the database stays unavailable, the lease expires and frees the job.
        await _requeue(context, fencing_token, "a server became unavailable")
        raise
    finally:
        thread.shutdown(wait=False, cancel_futures=True)


async def _run_or_fail(context: JobContext, fencing_token: JobFencingToken, on_thread: ThreadRunner) -> TrainingJobRow:
    try:
        return await _run(context, fencing_token, on_thread)
    except (LeaseLostError, Unavailable):
        raise
    except OffingError as error:
        return await _fail(context, fencing_token, str(error))
    except Exception as error:
        log.exception("job %s failed", fencing_token.job_id)
        await _fail(context, fencing_token, f"{type(error).__name__}: {error}")
        raise


async def _requeue(context: JobContext, fencing_token: JobFencingToken, reason: str) -> None:
    """Requeue the job, so that it can be claimed again immediately."""
    async with context.database.transaction(fencing_token.tenant_id) as connection:
        await training_jobs.release_job(connection, fencing_token, "queued", stop_reason=reason)


def _thread_runner(thread: ThreadPoolExecutor) -> ThreadRunner:
    return lambda work: asyncio.get_running_loop().run_in_executor(thread, work)


async def _run(context: JobContext, fencing_token: JobFencingToken, on_thread: ThreadRunner) -> TrainingJobRow:
    course = await _start(context, fencing_token, on_thread)
    try:
        while True:
            ended = await _run_step(course, on_thread)
            if ended is not None:
                return ended
    finally:
        await asyncio.to_thread(course.sinks.close, context.sink_close_timeout_seconds)


async def _start(context: JobContext, fencing_token: JobFencingToken, on_thread: ThreadRunner) -> _JobProgress:
    async with context.database.transaction(fencing_token.tenant_id) as connection:
        job = await training_jobs.get_job(connection, fencing_token.job_id)
        config = parse_config(job.config)
        policies = await load_job_policies(connection, config)
        query = build_group_query(config.data)
        state = await training_jobs.get_plugin_state(connection, job.id)
        first = await training_metrics.get_first_values(connection, job.id, BASELINE_METRICS)
    context.on_phase(job, "opening the policy", {})
    for version in filter(None, (policies.start, policies.reference)):
        await policy_files.check_files(context.database, fencing_token.tenant_id, version)
    trainee: JobTrainer = await on_thread(lambda: context.open_trainer(config, policies))
    if job.checkpoint:
        await on_thread(lambda: trainee.load(Path(job.checkpoint)))
    await asyncio.sleep(VISIBILITY_DELAY.total_seconds() if job.step == 0 else 0)
    async with context.database.transaction(fencing_token.tenant_id) as connection:
        total = sum((await training_groups.count_groups(connection, query, job.data_until)).values())
        job = await training_jobs.set_planned_steps(connection, fencing_token, _plan_steps(config, total))
    about = SinkContext(job.id, config.policy, job.config, job_folder(context.data_dir, job.id))
    sinks = MetricWriter(context.build_sink_factories(config.sinks, about))
    return _JobProgress(context, fencing_token, job, config, policies, trainee, query, total, state, sinks, first)


def _plan_steps(config: TrainConfig, group_count: int) -> int | None:
    """Return how many steps the job will have.

    A job that trains on stored groups may have fewer, since a step takes more groups if rewards are equal.
    """
    if config.collect is not None:
        return config.max_steps
    stored = math.ceil(group_count / config.data.groups_per_step) * config.data.data_passes
    return stored if config.max_steps is None else min(stored, config.max_steps)


async def _run_step(progress: _JobProgress, on_thread: ThreadRunner) -> TrainingJobRow | None:
    """Run one step or end the job. Returns `None` if there is more to do."""
    job, config = progress.job, progress.config
    if (config.collect is None and job.phase == "registered") or (
        config.max_steps is not None and job.step >= config.max_steps
    ):
        return await _finish(progress, on_thread, "all steps are done")
    progress.set_phase("choosing")
    step_groups = (
        await _select_stored_groups(progress) if config.collect is None else await _collect_groups(progress, on_thread)
    )
    if isinstance(step_groups, str):
        return await _finish(progress, on_thread, step_groups)
    step = await _train_step(progress, step_groups, on_thread) if step_groups.selection.groups else _empty_result()
    metrics = {**_data_metrics(step_groups.selection), **step.metrics}
    if (violation := find_violation(config.guards, progress.first_metrics, metrics)) is not None:
        return await _stop_at_guard(progress, violation, on_thread)
    checkpoint = (
        await _save_checkpoint(progress, on_thread) if step_groups.selection.groups else progress.job.checkpoint
    )
    metrics |= progress.timer.take_metrics()
    requested_action = await _commit_step(progress, step_groups, step, metrics, checkpoint)
    progress.set_phase("committed", metrics)
    progress.sinks.write(progress.job.step, metrics)
    prune_checkpoints(progress.folder, progress.job.step, progress.job.last_good_step)
    return await _apply_requested_action(progress, requested_action)


async def _train_step(
    progress: _JobProgress, step_groups: "_StepGroups", on_thread: ThreadRunner
) -> TrainingStepResult:
    config, number = progress.config, progress.job.step + 1
    progress.set_phase("reading")
    state = dict(progress.plugin_state)
    read = await progress.trainer.load_groups(
        progress.context.database, progress.fencing_token.tenant_id, step_groups.selection.groups, state
    )
    group_selection.check_tokenizers(read.tokenizer_counts, progress.job_policies.start.tokenizer_sha256, config.policy)
    fraction = _progress_fraction(progress)
    return await on_thread(lambda: progress.trainer.train_step(read, state, number, fraction, progress.set_phase))


def _progress_fraction(progress: _JobProgress) -> float:
    """Return the progress of the job from 0 to 1.

    It is the fraction of the groups, or of the steps if the job collects its own rollouts.
    """
    config, job = progress.config, progress.job
    if config.collect is not None and config.max_steps:
        return job.step / config.max_steps
    total_groups = progress.group_count * config.data.data_passes
    return min(1.0, job.group_count / total_groups) if total_groups else 0.0


def _empty_result() -> TrainingStepResult:
    """Return the result of a step without any usable group."""
    return TrainingStepResult({}, {}, {})


async def _save_checkpoint(progress: _JobProgress, on_thread: ThreadRunner) -> str:
    step, last = progress.job.step + 1, progress.job.checkpoint
    folder = step_folder(progress.folder, step, progress.fencing_token.fence)
    writes_moments = not last or step % progress.config.learner.optimizer_state_every_steps == 0
    progress.set_phase("saving")
    await on_thread(lambda: progress.trainer.save(folder, None if writes_moments else Path(last)))
    progress.set_phase("saved")
    return str(folder)


@dataclass(frozen=True, slots=True)
class _StepGroups:
    """The groups of a step, and the data pass that it belongs to."""

    selection: GroupSelection
    data_pass: int


async def _select_stored_groups(progress: _JobProgress) -> _StepGroups | str:
    """Select the next step's stored groups, or return why there are none."""
    job, passes = progress.job, progress.config.data.data_passes
    choice = await _select_groups(progress, _last_group(job))
    if _is_full_step(progress, choice):
        return _StepGroups(choice, job.data_pass)
    if job.data_pass < passes and _is_full_step(progress, again := await _select_groups(progress, None)):
        return _StepGroups(again, job.data_pass + 1)
    return "no groups are left" if not choice.examined else "too few groups with differing rewards are left"


async def _collect_groups(progress: _JobProgress, on_thread: ThreadRunner) -> _StepGroups:
    """Collect groups for the next step with the weights of the last one."""
    if progress.context.collect_groups is None:
        raise InvalidInput("collect", "this process cannot collect rollouts", "Run the job with `offing loop`.")
    policy = await _publish(progress, on_thread) if progress.job.step else progress.job_policies.start
    heads = await progress.context.collect_groups(
        progress.fencing_token.tenant_id, progress.job, progress.config, policy, progress.set_phase
    )
    step_size = StepSize(len(heads) + 1, 0, len(heads) + 1, progress.config.data.max_version_lag)
    return _StepGroups(group_selection.select_groups(heads, step_size, policy.label), 1)


def _is_full_step(progress: _JobProgress, selection: GroupSelection) -> bool:
    """Return whether the selection makes a step.

    That is a full step, a final step with informative groups, or one that only records ledger reasons.
    """
    if selection.is_full or (selection.ledger_reasons and not selection.groups):
        return True
    return bool(selection.groups) and selection.informative_count >= min(progress.config.data.min_informative_groups, 1)


async def _select_groups(progress: _JobProgress, last_group: tuple[datetime, UUID] | None) -> GroupSelection:
    """Select the next step's groups. A selection that is not full has all remaining groups."""
    data = progress.config.data
    step_size = StepSize(
        data.groups_per_step,
        data.min_informative_groups,
        data.max_groups_per_step or data.groups_per_step * MAX_GROUPS_FACTOR,
        data.max_version_lag,
    )
    heads: list[GroupSummary] = []
    while True:
        async with progress.context.database.transaction(progress.fencing_token.tenant_id) as connection:
            page = await training_groups.list_groups(
                connection, progress.query, progress.job.data_until, last_group, GROUP_PAGE_SIZE
            )
        heads += page
        choice = group_selection.select_groups(heads, step_size, progress.config.policy)
        if choice.is_full or len(page) < GROUP_PAGE_SIZE:
            return choice
        last_group = (page[-1].completed_at, page[-1].id)


async def _commit_step(
    progress: _JobProgress,
    step_groups: _StepGroups,
    result: TrainingStepResult,
    metrics: Mapping[str, float],
    checkpoint: str,
) -> str | None:
    number, choice = progress.job.step + 1, step_groups.selection
    state = {**result.state, **_update_curriculum(progress, choice)}
    committed = CommittedStep(
        step=number,
        last_good_step=number - 1,
        checkpoint=checkpoint,
        ledger_reasons={**choice.ledger_reasons, **result.ledger_reasons},
        group_count=choice.examined,
        data_pass=step_groups.data_pass,
        last_group_key=choice.last_group,
        metrics=metrics,
        plugin_state=state,
        phase=f"step {number}",
    )
    fencing_token = progress.fencing_token
    async with progress.context.database.transaction(fencing_token.tenant_id) as connection:
        requested_action = await training_jobs.commit_step(
            connection, fencing_token, progress.context.lease_seconds, committed
        )
        if metrics.get("skipped"):
            await training_events.insert_event(
                connection, fencing_token.tenant_id, "not_finite", {"step": number}, job_id=fencing_token.job_id
            )
        progress.job = await training_jobs.get_job(connection, fencing_token.job_id)
    progress.plugin_state = {**progress.plugin_state, **state}
    measured = {name: metrics[name] for name in BASELINE_METRICS if name in metrics}
    progress.first_metrics = {**measured, **progress.first_metrics}
    return requested_action


def _update_curriculum(progress: _JobProgress, selection: GroupSelection) -> dict[str, Any]:
    """Return the updated curriculum table, or an empty dict without a curriculum."""
    collect = progress.config.collect
    if collect is None or collect.curriculum is None:
        return {}
    return curriculum.update_curriculum(collect.curriculum, progress.plugin_state, selection.groups)


async def _apply_requested_action(progress: _JobProgress, requested_action: str | None) -> TrainingJobRow | None:
    """Pause or cancel the job if that was requested."""
    if requested_action is None:
        return None
    state = "paused" if requested_action == "pause" else "cancelled"
    async with progress.context.database.transaction(progress.fencing_token.tenant_id) as connection:
        return await training_jobs.release_job(
            connection, progress.fencing_token, state, stop_reason="requested by a person"
        )


async def _stop_at_guard(progress: _JobProgress, violation: GuardViolation, on_thread: ThreadRunner) -> TrainingJobRow:
    """Stop the job at a guard and return to the last good weights. This step is not committed."""
    good = progress.job.last_good_step
    folder = find_checkpoint(progress.folder, good) if good else None
    await on_thread(lambda: progress.trainer.load(folder))
    detail = {"step": progress.job.step + 1, "reason": str(violation), "back_to_step": good}
    async with progress.context.database.transaction(progress.fencing_token.tenant_id) as connection:
        await training_events.insert_event(
            connection, progress.fencing_token.tenant_id, "guard", detail, job_id=progress.fencing_token.job_id
        )
        return await training_jobs.release_job(
            connection,
            progress.fencing_token,
            "failed",
            stop_reason="guard",
            error=(
                f"Stopped at step {progress.job.step + 1}: {violation}. The last good weights are those of step {good}."
            ),
            checkpoint=str(folder or ""),
        )


async def _finish(progress: _JobProgress, on_thread: ThreadRunner, reason: str) -> TrainingJobRow:
    """Export and register the policy, if any step was trained, and end the job."""
    produced = None
    # Steps without any advantage move the weights too, by their regularizers. Only a trained step has a checkpoint.
    if progress.job.checkpoint and (progress.job.produced_version_id is None or progress.config.collect is not None):
        produced = (await _publish(progress, on_thread)).id
    async with progress.context.database.transaction(progress.fencing_token.tenant_id) as connection:
        released = await training_jobs.release_job(
            connection, progress.fencing_token, "done", stop_reason=reason, produced_version_id=produced, checkpoint=""
        )
    progress.job = released
    progress.set_phase("done")
    remove_checkpoints(progress.folder)
    shutil.rmtree(progress.context.policy_dir / f".export-{released.id}", ignore_errors=True)
    return released


async def _publish(progress: _JobProgress, on_thread: ThreadRunner) -> PolicyVersionRow:
    progress.set_phase("exporting")
    files: Path = await on_thread(
        lambda: publication.export_weights(
            progress.context.policy_dir, progress.fencing_token.job_id, progress.trainer.export_policy
        )
    )
    progress.set_phase("exported")
    job = progress.job
    lineage = {
        "job": str(job.id),
        "config_sha256": job.config_sha256,
        "parent": progress.config.policy,
        "steps": job.step,
        "groups": job.group_count,
        "rollouts": job.rollout_count,
    }
    policies = progress.job_policies
    lora = progress.config.learner.kind == "lora"
    base = (policies.base or policies.start) if lora else None
    registration = Registration(job.name, policies.start, base, lineage)
    row = await publication.register_version(
        progress.context.database, progress.fencing_token, registration, files, progress.set_phase
    )
    progress.set_phase("registered")
    return row


async def _fail(context: JobContext, fencing_token: JobFencingToken, error: str) -> TrainingJobRow:
    async with context.database.transaction(fencing_token.tenant_id) as connection:
        await training_events.insert_event(
            connection, fencing_token.tenant_id, "failed", {"error": error[:2000]}, job_id=fencing_token.job_id
        )
        return await training_jobs.release_job(
            connection, fencing_token, "failed", stop_reason="error", error=error[:2000]
        )


def _last_group(job: TrainingJobRow) -> tuple[Any, UUID] | None:
    return (
        None
        if job.last_group_completed_at is None or job.last_group_id is None
        else (job.last_group_completed_at, job.last_group_id)
    )


def _data_metrics(selection: GroupSelection) -> dict[str, float]:
    return {
        "groups": float(len(selection.groups)),
        "groups_examined": float(selection.examined),
        "groups_informative": float(selection.informative_count),
        "groups_stale": float(selection.stale_count),
        "groups_incomplete": float(selection.incomplete_count),
    }
