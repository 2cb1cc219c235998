"""Settling rollouts: what becomes of one when its run has ended, and when its group is whole.

An infrastructure error is tried again, and then leaves its group; anything else is scored. Settling is idempotent and
may happen at any time, anywhere, and at once: the group's row is locked, and what was settled stays.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Protocol
from uuid import UUID

import structlog

from offing.clock import new_id
from offing.core.errors import Unavailable
from offing.core.model import Usage
from offing.core.run import StopReason
from offing.core.scoring import plain
from offing.core.trajectory import Outcome, outcome_of
from offing.scorers import Sample, Score, Scorer, Unscored, registry
from offing.storage import rewards, rollouts, spend
from offing.storage.pool import Connection, Database
from offing.storage.rewards import NewScore
from offing.storage.rollouts import Ended, LockedGroup

TRIES = 8
"""Failures of one scorer at one rollout, after which the rollout has no reward and leaves its group."""

FIRST_PAUSE, LONGEST_PAUSE = 5.0, 600.0
"""Seconds between a scorer's failure and the next try; doubled each time."""

SCORING_SECONDS = 300.0
"""How long whoever asks an engine for a score keeps others from asking the same."""

AT_ONCE = 8
"""Rollouts that a sweep settles at the same time."""

MOST = 500
"""Rollouts of one sweep."""

log = structlog.get_logger()


class Hints(Protocol):
    async def wake(self, run: UUID) -> None: ...


@dataclass(frozen=True, slots=True)
class Wanted:
    """A scorer as its group has pinned it."""

    name: str
    version: str
    weight: float
    options: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Work:
    """What is to be scored, by whom, and what is known already."""

    group: LockedGroup
    case: Ended
    sample: Sample
    wanted: tuple[Wanted, ...]
    known: Mapping[str, float]
    """Values by scorer."""
    failures: Mapping[str, int]
    """How often each scorer has failed."""

    @property
    def left(self) -> tuple[Wanted, ...]:
        return tuple(w for w in self.wanted if w.name not in self.known)

    @property
    def asks(self) -> bool:
        """Whether an engine has to be asked."""
        return any((scorer := registry().get(w.name)) is not None and scorer.asks for w in self.left)


class TenantMeter:
    """Money for what is asked outside any run: only the tenant's cap for the day limits it."""

    def __init__(self, database: Database, tenant: UUID) -> None:
        self._database, self._tenant = database, tenant

    async def reserve(self, tokens: int, usd: Decimal) -> StopReason | None:
        if not usd:
            return None
        async with self._database.transaction(self._tenant) as connection:
            room = await spend.room_for(connection, self._tenant, usd)
        return None if room else StopReason.TENANT_SPEND_LIMIT

    async def settle(self, usage: Usage) -> None:
        if usage.usd:
            async with self._database.transaction(self._tenant) as connection:
                await spend.book(connection, self._tenant, usage.usd)


async def settle(database: Database, hints: Hints, tenant: UUID, run: UUID) -> None:
    """Do what is to be done about an ended rollout. Nothing for any other run, and for one that was settled.

    One transaction, or two around what an engine is asked. Raises Unavailable; the sweep then does it later.
    """
    meter = TenantMeter(database, tenant)
    async with database.transaction(tenant) as connection:
        group = await rollouts.lock(connection, run)
        case = await rollouts.ended(connection, run) if group else None
        if group is None or case is None:
            return
        outcome = outcome_of(case.status, case.stop_reason)
        again, work = None, None
        if outcome is Outcome.INFRA_ERROR:
            again = await _tried_again(connection, group, case)
        else:
            work = await _work(connection, group, case, outcome)
            if not work.asks:
                await _conclude(connection, tenant, work, await _scores(work, meter))
            elif not await rollouts.take(connection, run, SCORING_SECONDS):
                return
    if again is not None:
        await hints.wake(again)
    if work is not None and work.asks:
        await _conclude_later(database, tenant, work, await _scores(work, meter))


async def settle_forgotten(database: Database, hints: Hints, forgotten_after: float) -> None:
    """Settle what is due for so many seconds: its settler was lost, or a scorer failed. Any number may do so."""
    due = await rollouts.sweep(database, forgotten_after, MOST)
    places = asyncio.Semaphore(AT_ONCE)

    async def one(run: UUID, tenant: UUID) -> None:
        async with places:
            try:
                await settle(database, hints, tenant, run)
            except Unavailable as error:
                log.info("not settled", run=str(run), reason=str(error))
            except Exception:  # one that cannot be settled must not keep the others from it
                log.exception("not settled", run=str(run))

    await asyncio.gather(*(one(run, tenant) for run, tenant in due))


async def _tried_again(connection: Connection, group: LockedGroup, case: Ended) -> UUID | None:
    """Settle an infrastructure error; the run that tries it again. None: its member leaves the group."""
    await rollouts.finish(connection, case.run, Outcome.INFRA_ERROR, None)
    again = new_id()
    if case.attempt < group.attempts and await rollouts.retry(connection, case.run, again, new_id()):
        return again
    await rollouts.complete(connection, group)
    return None


async def _work(connection: Connection, group: LockedGroup, case: Ended, outcome: Outcome) -> Work:
    wanted = tuple(_wanted(s) for s in group.scorers)
    whole = any((scorer := registry().get(w.name)) is not None and scorer.reads_report for w in wanted)
    report = await rollouts.report(connection, case) if whole else None
    found = await rewards.scores(connection, [case.run]) if case.tried else []
    failures: dict[str, int] = {}
    for score in found:
        failures[score.scorer] = failures.get(score.scorer, 0) + (score.value is None)
    return Work(
        group,
        case,
        Sample(case.question, outcome, plain(case.answer), report, case.reference, case.seed),
        wanted,
        {score.scorer: score.value for score in found if score.value is not None},
        failures,
    )


def _wanted(pinned: Mapping[str, Any]) -> Wanted:
    return Wanted(pinned["name"], pinned["version"], pinned["weight"], pinned["options"])


async def _scores(work: Work, meter: TenantMeter) -> list[NewScore]:
    """What each scorer that is left finds, or why it does not."""
    return [await _score(work, wanted, meter) for wanted in work.left]


async def _score(work: Work, wanted: Wanted, meter: TenantMeter) -> NewScore:
    scorer = registry().get(wanted.name)
    if scorer is None or scorer.version != wanted.version:
        here = f"version {scorer.version} of it" if scorer else "none of that name"
        found: Score | Unscored = Unscored(f"The group pins version {wanted.version}; this worker has {here}.")
    else:
        found = await _found(scorer, work.sample, wanted.options, meter)
    if isinstance(found, Unscored):
        return NewScore(new_id(), wanted.name, wanted.version, None, found.message)
    return NewScore(new_id(), wanted.name, wanted.version, found.value, "", found.detail)


async def _found(scorer: Scorer, sample: Sample, options: Mapping[str, Any], meter: TenantMeter) -> Score | Unscored:
    if lacks := scorer.lacks(sample.reference):
        return Unscored(f"The task cannot be scored: {lacks}.")
    try:
        return await scorer.score(sample, options, meter)
    except Unavailable:
        raise
    except Exception as error:  # a scorer's own fault is on record as its failure, and never a value
        log.exception("scorer failed", scorer=scorer.name)
        return Unscored(f"{type(error).__name__}: {error}")


async def _conclude_later(database: Database, tenant: UUID, work: Work, scores: Sequence[NewScore]) -> None:
    """The same in a transaction of its own, unless somebody else was faster."""
    async with database.transaction(tenant) as connection:
        run = work.case.run
        if await rollouts.lock(connection, run) and await rollouts.ended(connection, run):
            await _conclude(connection, tenant, work, scores)


async def _conclude(connection: Connection, tenant: UUID, work: Work, scores: Sequence[NewScore]) -> None:
    """Keep what was found; settle the rollout, unless a scorer that failed is to be tried again."""
    run = work.case.run
    await rewards.add_scores(connection, tenant, run, work.case.report_version, scores)
    if pause := _pause(work, scores):
        await rollouts.postpone(connection, run, pause)
        return
    values = {**work.known, **{s.scorer: s.value for s in scores if s.value is not None}}
    await rollouts.finish(connection, run, work.sample.outcome, _reward(work.wanted, values))
    await rollouts.complete(connection, work.group)


def _pause(work: Work, scores: Sequence[NewScore]) -> float | None:
    """Seconds until the next try. None: there is nothing to try again."""
    failed = [work.failures.get(s.scorer, 0) + 1 for s in scores if s.value is None]
    tries = max((n for n in failed if n < TRIES), default=None)
    return None if tries is None else min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** (tries - 1))


def _reward(wanted: Sequence[Wanted], values: Mapping[str, float]) -> float | None:
    """The weighted sum. None: nothing has a weight, or something that has one has no value."""
    weighted = [w for w in wanted if w.weight]
    if not weighted or any(w.name not in values for w in weighted):
        return None
    return sum(w.weight * values[w.name] for w in weighted)
