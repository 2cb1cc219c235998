"""A distillation job, from its claim to its end: read rated runs, compare them, register a candidate.

A training step of the job is one comparison. It counts when its transaction commits, with the
edited library, the used groups and one ledger row per run. The next worker that claims the job
continues after the last committed step. The job never changes the active version.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

import structlog
from pydantic import BaseModel

from offing.bus.notifier import RunNotifier
from offing.cancellation import run_to_completion
from offing.core.errors import LeaseLostError, OffingError, Unavailable
from offing.core.model import EngineFailure, Usage, describe_engine
from offing.core.prompt_library import PromptLibrary, add_cases, apply_edits, render_experiences
from offing.core.run import StopReason
from offing.core.step import Step
from offing.models.engine import RoleRequest, UsageMeter, create_engine
from offing.sdk import Graph
from offing.services import prompt_distillation, prompt_library
from offing.services.prompt_distillation import DistillationRequest
from offing.services.prompt_library import StoredPromptLibrary
from offing.services.providers import TenantProviders
from offing.services.rated_run_groups import RatedRunGroup, render_steps, select_cases
from offing.services.tenant_meter import TenantMeter
from offing.services.training_job_lease import hold_lease
from offing.storage import policy_versions, steps, tenants, training_events, training_jobs
from offing.storage.pool import Database
from offing.storage.rated_runs import RatedRun
from offing.storage.training_jobs import CommittedStep, JobFencingToken, TrainingJobRow
from offing_workers.prompt_distillation.candidate_evaluation import evaluate_candidate
from offing_workers.prompt_distillation.distiller import DISTILLER, DistillerInput, DistillerOutput, RatedAttempt

PROMPT_LIBRARY_FOLDER = "prompts"
"""Folder in the data directory for readable copies, with one subfolder per version."""

MAX_STEPS_PER_RUN = 400
"""Maximum number of steps per run."""

MAX_USED_GROUPS = 10_000
"""Maximum number of used groups that a version stores."""

MAX_REJECTED_EDITS = 100
"""Maximum number of rejected edits that are kept with their reasons."""

PROGRESS_KEY = "progress"

log = structlog.get_logger()


class DistillationProgress(BaseModel, frozen=True):
    """Progress of the comparisons, as of the last committed step."""

    start: str
    """The version that is extended, as NAME@VERSION."""
    library: PromptLibrary
    used_groups: tuple[str, ...] = ()
    """Digests of the groups that were used."""
    compared: int = 0
    total: int = 0
    """Total number of comparisons."""
    edits: int = 0
    rejected_edits: tuple[str, ...] = ()
    """Rejected edits with their reasons."""
    cost_usd: float = 0.0
    priced: bool = True
    """`False` means that the cost is a lower bound."""
    prompt_tokens: int = 0
    completion_tokens: int = 0


@dataclass(frozen=True, slots=True)
class DistillationContext:
    """Resources of a process for its distillation jobs."""

    database: Database
    folder: Path
    """Folder for readable copies."""
    worker: str
    lease_seconds: float
    """Seconds that a claim holds without a heartbeat."""
    graphs: Mapping[str, Graph] = field(default_factory=dict[str, Graph])
    notifier: RunNotifier | None = None
    """With `graphs`, used to evaluate candidates. `None` means that candidates are not evaluated here."""


@dataclass(frozen=True, slots=True)
class _ActiveJob:
    """A distillation job in progress."""

    context: DistillationContext
    token: JobFencingToken
    job: TrainingJobRow
    request: DistillationRequest
    base: StoredPromptLibrary
    progress: DistillationProgress
    stop_reason: str = ""
    """Why the job ends before all comparisons are done. Empty means that it continues."""

    def with_progress(self, **changed: Any) -> "_ActiveJob":
        """Return the job with updated progress."""
        return replace(self, progress=self.progress.model_copy(update=changed))


class LimitedMeter:
    """The tenant's usage meter, with an additional cost limit for the job."""

    def __init__(self, inner: UsageMeter, max_cost_usd: float | None, cost_usd: float) -> None:
        self._inner, self._limit, self.cost_usd = inner, max_cost_usd, Decimal(str(cost_usd))

    async def reserve(self, max_tokens: int, max_cost_usd: Decimal) -> StopReason | None:
        if self._limit is not None and max_cost_usd and self.cost_usd + max_cost_usd > Decimal(str(self._limit)):
            return StopReason.SPEND_LIMIT
        return await self._inner.reserve(max_tokens, max_cost_usd)

    async def settle(self, usage: Usage) -> None:
        self.cost_usd += usage.cost_usd
        await self._inner.settle(usage)


async def run_next_job(context: DistillationContext) -> TrainingJobRow | None:
    """Claim the oldest waiting job and run it. Return `None` if there is none.

    Raises LeaseLostError if the claim is lost meanwhile.
    """
    claimed = await training_jobs.claim_distillation_job(context.database, context.worker, context.lease_seconds)
    return None if claimed is None else await run_job(context, claimed)


async def run_job(context: DistillationContext, token: JobFencingToken) -> TrainingJobRow:
    """Advance a claimed job until it ends, pauses or fails. A failure is stored with the job."""
    try:
        async with hold_lease(context.database, token, context.lease_seconds):
            return await _run_or_fail(context, token)
    except asyncio.CancelledError:
        await run_to_completion(_requeue_job(context, token))
        raise


async def _run_or_fail(context: DistillationContext, token: JobFencingToken) -> TrainingJobRow:
    try:
        return await _run_steps(await _load_job(context, token))
    except (LeaseLostError, Unavailable):
        raise
    except OffingError as error:
        return await _release_job(context, token, "failed", error=str(error))
    except Exception as error:
        log.exception("distillation failed", job=str(token.job_id))
        return await _release_job(context, token, "failed", error=f"{type(error).__name__}: {error}")


async def _load_job(context: DistillationContext, token: JobFencingToken) -> _ActiveJob:
    async with context.database.transaction(token.tenant_id) as connection:
        job = await training_jobs.get_job(connection, token.job_id)
        stored_progress = (await training_jobs.get_plugin_state(connection, token.job_id)).get(PROGRESS_KEY)
    request = prompt_distillation.parse_request(job)
    if stored_progress is not None:
        progress = DistillationProgress.model_validate(stored_progress)
        parent = await prompt_library.get_library(context.database, token.tenant_id, progress.start)
        return _ActiveJob(context, token, job, request, parent, progress)
    parent = await prompt_distillation.open_start_version(context.database, token.tenant_id, job.name, context.folder)
    progress = DistillationProgress(start=parent.version.label, library=parent.library)
    run = _ActiveJob(context, token, job, request, parent, progress)
    telling = sum(group.is_informative for group in await _list_remaining_groups(run))
    run = replace(run, progress=progress.model_copy(update={"total": min(telling, request.max_groups)}))
    async with context.database.transaction(token.tenant_id) as connection:
        await training_jobs.store_initial_state(
            connection, token, context.lease_seconds, {PROGRESS_KEY: run.progress.model_dump(mode="json")}
        )
    return run


async def _run_steps(job: _ActiveJob) -> TrainingJobRow:
    """Run all steps, register the candidate and evaluate it."""
    if job.job.produced_version_id is not None:
        return await _evaluate_registered(job, job.job.produced_version_id)
    remaining_groups = await _list_remaining_groups(job)
    action = await _renew_lease(job, _render_phase(job))
    while remaining_groups and not action and not job.stop_reason:
        step_groups = _select_step_groups(remaining_groups)
        job = await _run_step(job, step_groups)
        if not job.stop_reason:
            action, job = await _commit_step(job, step_groups)
            remaining_groups = remaining_groups[len(step_groups) :]
    if action:
        return await _release_job(job.context, job.token, "paused" if action == "pause" else "cancelled")
    return await _register_candidate(job)


async def _list_remaining_groups(job: _ActiveJob) -> list[RatedRunGroup]:
    """Return the groups that neither the base version nor an earlier step of this job has used.

    Their ratings are those of the time when the job was created.
    """
    request, tenant = job.request, job.token.tenant_id
    runs = await prompt_distillation.list_distillable_runs(
        job.context.database, tenant, request.graph, request.tag, job.job.data_until
    )
    used = frozenset(job.progress.used_groups)
    return [
        group
        for group in prompt_distillation.filter_new_groups(runs.runs, job.base.version)
        if group.digest not in used
    ]


def _select_step_groups(remaining: Sequence[RatedRunGroup]) -> Sequence[RatedRunGroup]:
    """Return the groups of the next step: those without information, up to the first to compare."""
    at = next((n for n, group in enumerate(remaining) if group.is_informative), len(remaining) - 1)
    return remaining[: at + 1]


async def _run_step(job: _ActiveJob, groups: Sequence[RatedRunGroup]) -> _ActiveJob:
    """Return the job after a step, not committed yet.

    If `stop_reason` is set, the job ends before the step.
    """
    if groups[-1].is_informative and job.progress.compared >= job.request.max_groups:
        return replace(job, stop_reason=f"all {job.request.max_groups} requested groups are compared")
    did = await _load_steps(job, groups)
    if did is None:
        return replace(job, stop_reason="training_opt_in was switched off")
    if groups[-1].is_informative:
        job = await _run_comparison(job, groups[-1], did)
    library = job.progress.library
    for group in groups if job.request.include_cases else ():
        library = add_cases(library, select_cases(group, did))
    digests = (*job.progress.used_groups, *(group.digest for group in groups))
    return job if job.stop_reason else job.with_progress(library=library, used_groups=digests)


async def _run_comparison(
    job: _ActiveJob, group: RatedRunGroup, steps_by_run: Mapping[UUID, Sequence[Step]]
) -> _ActiveJob:
    """Run one comparison, and add its cost even if it fails."""
    progress, request = job.progress, job.request
    if request.max_cost_usd is not None and progress.cost_usd >= request.max_cost_usd:
        return replace(job, stop_reason=f"the cost limit is reached: {progress.cost_usd:.4f} USD")
    engine = create_engine(request.engine)
    if isinstance(engine, EngineFailure):
        return replace(job, stop_reason=engine.message)
    distiller_input = _build_distiller_input(group, steps_by_run, progress.library)
    meter = LimitedMeter(
        TenantMeter(job.context.database, job.token.tenant_id), request.max_cost_usd, progress.cost_usd
    )
    find_provider = TenantProviders(job.context.database, job.token.tenant_id).find
    number = progress.compared + 1
    answer = await engine.answer(
        RoleRequest(DISTILLER, distiller_input, request.engine, number, 0, meter, find_provider=find_provider)
    )
    job = job.with_progress(**_add_usage(progress, answer.usage))
    if isinstance(answer, EngineFailure):
        return replace(job, stop_reason=f"{answer.kind}: {answer.message}")
    lesson = answer.output
    assert isinstance(lesson, DistillerOutput)
    library, rejected = apply_edits(progress.library, lesson.edits, [str(one.run_id) for one in group.best_and_worst])
    edit_count = progress.edits + len(lesson.edits) - len(rejected)
    rejected_edits = (*progress.rejected_edits, *rejected)[-MAX_REJECTED_EDITS:]
    return job.with_progress(
        library=library, compared=progress.compared + 1, edits=edit_count, rejected_edits=rejected_edits
    )


def _add_usage(progress: DistillationProgress, usage: Usage) -> dict[str, Any]:
    return {
        "cost_usd": progress.cost_usd + float(usage.cost_usd),
        "priced": progress.priced and usage.priced,
        "prompt_tokens": progress.prompt_tokens + usage.prompt_tokens,
        "completion_tokens": progress.completion_tokens + usage.completion_tokens,
    }


def _build_distiller_input(
    group: RatedRunGroup, steps_by_run: Mapping[UUID, Sequence[Step]], prompt_library: PromptLibrary
) -> DistillerInput:
    attempts = [
        RatedAttempt(
            did=render_steps(steps_by_run.get(run.run_id, ())),
            answer=run.answer[:2000],
            reward=run.reward,
            corrections=run.corrections,
        )
        for run in group.best_and_worst
    ]
    return DistillerInput(
        question=group.question, attempts=tuple(attempts), experiences=render_experiences(prompt_library)
    )


async def _load_steps(job: _ActiveJob, groups: Sequence[RatedRunGroup]) -> dict[UUID, list[Step]] | None:
    """Return the steps of the runs to compare. `None` means that training_opt_in was switched off."""
    runs: list[RatedRun] = [one for group in groups for one in group.best_and_worst]
    async with job.context.database.transaction(job.token.tenant_id) as connection:
        people = any(group.is_interactive for group in groups)
        if people and not (await tenants.get_tenant(connection, job.token.tenant_id)).training_opt_in:
            return None
        return {one.run_id: await steps.list_steps_after(connection, one.run_id, 0, MAX_STEPS_PER_RUN) for one in runs}


async def _renew_lease(job: _ActiveJob, phase: str) -> str | None:
    """Renew the lease and store the current phase. Return the requested action."""
    async with job.context.database.transaction(job.token.tenant_id) as connection:
        return await training_jobs.renew_lease(connection, job.token, job.context.lease_seconds, phase)


async def _commit_step(job: _ActiveJob, groups: Sequence[RatedRunGroup]) -> tuple[str | None, _ActiveJob]:
    """Store a step in one transaction. Return the requested action and the job after the step."""
    step = job.job.step + 1
    committed = CommittedStep(
        step, step, "", _build_ledger_reasons(groups), group_count=len(groups), metrics=_build_metrics(job.progress),
        plugin_state={PROGRESS_KEY: job.progress.model_dump(mode="json")}, phase=_render_phase(job),
    )  # fmt: skip
    async with job.context.database.transaction(job.token.tenant_id) as connection:
        action = await training_jobs.commit_step(connection, job.token, job.context.lease_seconds, committed)
    return action, replace(job, job=replace(job.job, step=step))


def _build_ledger_reasons(groups: Sequence[RatedRunGroup]) -> dict[UUID, str]:
    """Return the ledger reason of each run. A key in the store ensures that no run is used twice."""
    reasons: dict[UUID, str] = {}
    for group in groups:
        compared = {one.run_id for one in group.best_and_worst}
        for one in group.runs:
            reasons[one.run_id] = (
                "zero_advantage" if not group.is_informative else "used" if one.run_id in compared else "unselected"
            )
    return reasons


def _build_metrics(progress: DistillationProgress) -> dict[str, float]:
    """Return the metrics of the whole job so far."""
    return {
        "compared": progress.compared,
        "total": progress.total,
        "edits": progress.edits,
        "experiences": len(progress.library.experiences),
        "cases": len(progress.library.cases),
        "cost_usd": progress.cost_usd,
        "priced": float(progress.priced),
        "prompt_tokens": progress.prompt_tokens,
        "completion_tokens": progress.completion_tokens,
    }


def _render_phase(job: _ActiveJob) -> str:
    progress = job.progress
    return (
        f"comparing {progress.compared + 1} of {progress.total}"
        if progress.compared < progress.total
        else "registering"
    )


async def _register_candidate(job: _ActiveJob) -> TrainingJobRow:
    """Register the candidate.

    If the first comparison failed, there is no candidate, and the failed job can be resumed.
    """
    progress, parent = job.progress, job.base
    if progress.library == parent.library:
        if job.stop_reason:
            return await _release_job(job.context, job.token, "failed", error=job.stop_reason)
        return await _release_job(job.context, job.token, "done", reason="the comparisons gave no new experiences")
    version, _ = await prompt_library.register_library(
        job.context.database, job.token.tenant_id, job.job.name, progress.library, job.context.folder,
        parent_id=parent.version.id, lineage=_build_lineage(job),
    )  # fmt: skip
    async with job.context.database.transaction(job.token.tenant_id) as connection:
        await training_jobs.set_produced_version(connection, job.token, version.id)
    return await _evaluate_registered(job, version.id)


async def _evaluate_registered(job: _ActiveJob, candidate_id: UUID) -> TrainingJobRow:
    """Evaluate a registered candidate if requested, and end the job."""
    context, token, gate, action = job.context, job.token, job.request.gate, None
    if gate is not None and context.notifier is not None:
        async with context.database.transaction(token.tenant_id) as connection:
            version = await policy_versions.get_version(connection, candidate_id)
        tell = partial(_renew_lease, job)
        action = await evaluate_candidate(
            context.database, token, context.notifier, context.graphs, gate, version, tell
        )
    state = "done" if action is None else "paused" if action == "pause" else "cancelled"
    return await _release_job(context, token, state, reason=job.stop_reason, produced=candidate_id)


def _build_lineage(job: _ActiveJob) -> dict[str, Any]:
    progress, before = job.progress, job.base.version.lineage
    return {
        "from": progress.start,
        "job": str(job.token.job_id),
        "engine": describe_engine(job.request.engine),
        "compared": progress.compared,
        "edits": progress.edits,
        "rejected_edits": list(progress.rejected_edits),
        "cost_usd": progress.cost_usd,
        "prompt_tokens": progress.prompt_tokens,
        "completion_tokens": progress.completion_tokens,
        "used_groups": [*before.get("used_groups", ()), *progress.used_groups][-MAX_USED_GROUPS:],
    }


async def _release_job(
    context: DistillationContext,
    token: JobFencingToken,
    state: str,
    *,
    reason: str = "",
    error: str = "",
    produced: UUID | None = None,
) -> TrainingJobRow:
    async with context.database.transaction(token.tenant_id) as connection:
        row = await training_jobs.release_job(
            connection, token, state, stop_reason=reason, error=error, produced_version_id=produced
        )
        if error:
            await training_events.insert_event(
                connection, token.tenant_id, "failed", {"error": error}, job_id=token.job_id
            )
    return row


async def _requeue_job(context: DistillationContext, token: JobFencingToken) -> None:
    """Release a job of a stopping process, so that another process continues at once.

    If this fails, the job continues when the lease expires.
    """
    try:
        await _release_job(context, token, "queued", reason="its process was stopped")
    except (LeaseLostError, Unavailable) as error:
        log.info("the job could not be queued again", job=str(token.job_id), reason=str(error))
