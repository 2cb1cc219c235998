"""Finalize rollouts when their run has ended, and complete their groups.

An infrastructure error is retried, and finally leaves its group. Any other outcome is scored.
Finalizing is idempotent and may happen at any time, on any worker, and several times at once: the
row of the group is locked, and a finalized rollout stays unchanged.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

import structlog

from offing.bus.notifier import RunDispatcher
from offing.clock import new_id
from offing.core.errors import Unavailable
from offing.core.scoring import strip_markup
from offing.core.trajectory import Outcome, classify_outcome
from offing.models.engine import UsageMeter
from offing.scorers import SCORERS, Scorer, ScorerResult, ScoringFailure, ScoringInput
from offing.services.judge_meter import JudgeMeter
from offing.services.providers import TenantProviders
from offing.services.rollouts import cancel_runs_of_batch
from offing.storage import judge_budgets, rewards, rollouts
from offing.storage.pool import Connection, Database
from offing.storage.rewards import NewScore
from offing.storage.rollouts import LockedGroup, UnfinalizedRollout
from offing_workers.recorded_results import RecordedResults, read_recorded_results

MAX_SCORER_FAILURES = 8
"""Maximum number of failures of one scorer for one rollout.

After them, the rollout has no reward and leaves its group.
"""

MIN_RETRY_SECONDS, MAX_RETRY_SECONDS = 5.0, 600.0
"""Seconds between a failure of a scorer and the next attempt. They double with each failure."""

SCORING_TIMEOUT_SECONDS = 300.0
"""Seconds for which a worker that calls an engine for a score reserves the rollout."""

MAX_CONCURRENCY = 8
"""Maximum number of rollouts that a sweep finalizes at the same time."""

MAX_ROLLOUTS_PER_SWEEP = 500
"""Maximum number of rollouts per sweep."""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class ScorerPin:
    """A scorer as pinned by a group."""

    name: str
    version: str
    weight: float
    options: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ScoringJob:
    """A rollout to score: its scorers and the known scores."""

    group: LockedGroup
    rollout: UnfinalizedRollout
    scoring_input: ScoringInput
    scorers: tuple[ScorerPin, ...]
    known_values: Mapping[str, float]
    """Known values, by scorer."""
    failure_counts: Mapping[str, int]
    """Number of failures of each scorer."""

    @property
    def remaining(self) -> tuple[ScorerPin, ...]:
        return tuple(w for w in self.scorers if w.name not in self.known_values)

    @property
    def needs_engine(self) -> bool:
        """Whether an engine has to be called."""
        return any((scorer := SCORERS.get(w.name)) is not None and scorer.needs_engine for w in self.remaining)


async def finalize_ended_rollout(database: Database, dispatcher: RunDispatcher, tenant_id: UUID, run_id: UUID) -> None:
    """Finalize an ended rollout. Do nothing for other runs and for finalized rollouts.

    Uses one transaction, or two if an engine has to be called in between. Raises Unavailable; then the
    sweep finalizes the rollout later.
    """
    async with database.transaction(tenant_id, pipelined=True) as connection:
        locked = await rollouts.lock_unfinalized_rollout(connection, run_id)
        if locked is None:
            return
        group, case = locked
        meter = JudgeMeter(database, tenant_id, group.batch_id)
        outcome = classify_outcome(case.status, case.stop_reason)
        again, work = None, None
        if outcome is Outcome.INFRA_ERROR:
            again = await _retry_rollout(connection, group, case)
        else:
            work = await _build_scoring_job(connection, group, case, outcome)
            if not work.needs_engine:
                await _store_scores(connection, tenant_id, work, await _compute_scores(work, meter))
            elif not await rollouts.acquire_scoring(connection, run_id, SCORING_TIMEOUT_SECONDS):
                return
    if again is not None:
        await dispatcher.dispatch_run(again)
    if work is not None and work.needs_engine:
        find_provider = TenantProviders(database, tenant_id).find
        work = replace(work, scoring_input=replace(work.scoring_input, find_provider=find_provider))
        scores = await _compute_scores(work, meter)
        if meter.is_spent:
            await _stop_batch(database, tenant_id, work.group.batch_id)
        await _store_scores_later(database, tenant_id, work, scores, is_last_try=meter.is_spent)


async def finalize_overdue(database: Database, dispatcher: RunDispatcher, overdue_seconds: float) -> None:
    """Finalize rollouts that are overdue, because a worker crashed or a scorer failed.

    `overdue_seconds` is the minimum time since they became due. Several workers may do so at once.
    """
    due = await rollouts.list_overdue_rollouts(database, overdue_seconds, MAX_ROLLOUTS_PER_SWEEP)
    semaphore = asyncio.Semaphore(MAX_CONCURRENCY)

    async def one(run_id: UUID, tenant_id: UUID) -> None:
        async with semaphore:
            try:
                await finalize_ended_rollout(database, dispatcher, tenant_id, run_id)
            except Unavailable as error:
                log.info("rollout not finalized yet", run=str(run_id), reason=str(error))
            except Exception:  # a rollout that cannot be finalized must not block the others
                log.exception("rollout cannot be finalized", run=str(run_id))

    await asyncio.gather(*(one(run, tenant) for run, tenant in due))


async def _retry_rollout(connection: Connection, group: LockedGroup, rollout: UnfinalizedRollout) -> UUID | None:
    """Finalize a rollout with an infrastructure error, and return the run that retries it.

    `None` means that there is no retry and its member leaves the group.
    """
    await rollouts.finalize_rollout(connection, rollout.run_id, Outcome.INFRA_ERROR, None)
    again = new_id()
    if rollout.attempt < group.max_attempts and await rollouts.retry_rollout(
        connection, rollout.run_id, again, new_id()
    ):
        return again
    await rollouts.complete_group(connection, group)
    return None


async def _build_scoring_job(
    connection: Connection, group: LockedGroup, rollout: UnfinalizedRollout, outcome: Outcome
) -> ScoringJob:
    scorer_pins = tuple(_parse_scorer_pin(s) for s in group.scorers)
    used = [scorer for pin in scorer_pins if (scorer := SCORERS.get(pin.name)) is not None]
    report = await rollouts.find_report(connection, rollout) if any(one.reads_report for one in used) else None
    results = RecordedResults()
    if any(one.reads_tool_results for one in used):
        results = await read_recorded_results(connection, rollout.run_id)
    stored_scores = await rewards.list_scores(connection, [rollout.run_id]) if rollout.was_scored else []
    failures: dict[str, int] = {}
    for score in stored_scores:
        failures[score.scorer] = failures.get(score.scorer, 0) + (score.value is None)
    return ScoringJob(
        group,
        rollout,
        ScoringInput(
            rollout.question,
            outcome,
            strip_markup(rollout.answer),
            report,
            rollout.reference,
            rollout.seed,
            results.retrieved,
            results.calculations,
        ),
        scorer_pins,
        {score.scorer: score.value for score in stored_scores if score.value is not None},
        failures,
    )


def _parse_scorer_pin(pinned: Mapping[str, Any]) -> ScorerPin:
    return ScorerPin(pinned["name"], pinned["version"], pinned["weight"], pinned["options"])


async def _compute_scores(job: ScoringJob, meter: UsageMeter) -> list[NewScore]:
    """Compute the score of each remaining scorer, or the reason why there is none."""
    return [await _compute_score(job, pin, meter) for pin in job.remaining]


async def _compute_score(job: ScoringJob, pin: ScorerPin, meter: UsageMeter) -> NewScore:
    scorer = SCORERS.get(pin.name)
    if scorer is None or scorer.version != pin.version:
        here = f"has version {scorer.version}" if scorer else "does not have it"
        result: ScorerResult | ScoringFailure = ScoringFailure(
            f"The group pins version {pin.version} of this scorer, but this worker {here}."
        )
    else:
        result = await _call_scorer(scorer, job.scoring_input, pin.options, meter)
    if isinstance(result, ScoringFailure):
        return NewScore(new_id(), pin.name, pin.version, None, result.message)
    return NewScore(new_id(), pin.name, pin.version, result.value, "", result.detail)


async def _call_scorer(
    scorer: Scorer, scoring_input: ScoringInput, options: Mapping[str, Any], meter: UsageMeter
) -> ScorerResult | ScoringFailure:
    if lacks := scorer.find_missing(scoring_input.reference):
        return ScoringFailure(f"The task cannot be scored: {lacks}.")
    try:
        return await scorer.score(scoring_input, options, meter)
    except Unavailable:
        raise
    except Exception as error:  # an error in a scorer is recorded as its failure, never as a value
        log.exception("scorer failed", scorer=scorer.name)
        return ScoringFailure(f"{type(error).__name__}: {error}")


async def _stop_batch(database: Database, tenant_id: UUID, batch_id: UUID) -> None:
    """Stop a batch whose judges have spent their budget: cancel its runs, so that none is collected and not scored."""
    async with database.transaction(tenant_id) as connection:
        await judge_budgets.stop_batch(connection, batch_id)
    await cancel_runs_of_batch(database, tenant_id, batch_id)


async def _store_scores_later(
    database: Database, tenant_id: UUID, job: ScoringJob, scores: Sequence[NewScore], *, is_last_try: bool
) -> None:
    """Store scores in a new transaction, unless another worker finalized the rollout meanwhile."""
    async with database.transaction(tenant_id) as connection:
        run = job.rollout.run_id
        if await rollouts.lock_unfinalized_rollout(connection, run):
            await _store_scores(connection, tenant_id, job, scores, is_last_try=is_last_try)


async def _store_scores(
    connection: Connection,
    tenant_id: UUID,
    job: ScoringJob,
    scores: Sequence[NewScore],
    *,
    is_last_try: bool = False,
) -> None:
    """Store scores, and finalize the rollout unless a failed scorer will be retried.

    On the last try it is finalized without a reward, which is never counted as 0.
    """
    run = job.rollout.run_id
    await rewards.insert_scores(connection, tenant_id, run, job.rollout.report_version, scores)
    if not is_last_try and (pause := _retry_delay_seconds(job, scores)):
        await rollouts.postpone_scoring(connection, run, pause)
        return
    values = {**job.known_values, **{s.scorer: s.value for s in scores if s.value is not None}}
    await rollouts.finalize_rollout(connection, run, job.scoring_input.outcome, _weight_scores(job.scorers, values))
    await rollouts.complete_group(connection, job.group)


def _retry_delay_seconds(job: ScoringJob, scores: Sequence[NewScore]) -> float | None:
    """Return the seconds until the next attempt. `None` means that there is nothing to retry."""
    failed = [job.failure_counts.get(s.scorer, 0) + 1 for s in scores if s.value is None]
    tries = max((n for n in failed if n < MAX_SCORER_FAILURES), default=None)
    return None if tries is None else min(MAX_RETRY_SECONDS, MIN_RETRY_SECONDS * 2 ** (tries - 1))


def _weight_scores(scorers: Sequence[ScorerPin], values: Mapping[str, float]) -> float | None:
    """Return the weighted sum of the scores.

    `None` means that no scorer has a weight, or that a scorer with a weight has no value.
    """
    weighted = [w for w in scorers if w.weight]
    if not weighted or any(w.name not in values for w in weighted):
        return None
    return sum(w.weight * values[w.name] for w in weighted)
