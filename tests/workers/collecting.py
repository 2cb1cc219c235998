"""Batches of rollouts whose worker is the test itself: it ends each run as it likes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from offing.core.model import EngineChoice
from offing.core.report import Citation, Report, ReportStatus, Section, Sentence
from offing.core.run import Budget, RunStatus, StopReason
from offing.core.step import StepDraft, StepKind
from offing.core.usage import UsageDelta
from offing.services import rollouts, tasks
from offing.services.graphs import installed
from offing.services.rollouts import BatchRequest, Created, ScorerSpec, SeenGroup
from offing.services.runs import ended_step
from offing.services.tasks import TaskSpec
from offing.storage import reports, runs, steps
from offing.storage.groups import GroupFilter
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Database
from offing.storage.rollouts import RolloutFilter, RolloutRow
from offing.storage.runs import Release
from offing_workers.collection import settle
from tests.workers.processes import ALL_GRAPHS

TERM = 30.0

SECRET = "Quintessenz von Nebelheim"
"""A reference answer that occurs nowhere else."""

JUDGE: dict[str, Any] = {"engine": "scripted", "options": {"answers": [{"score": 0.5, "reason": "half"}]}}

BROKEN: dict[str, Any] = {"engine": "scripted", "options": {**JUDGE["options"], "fail": {"1": {"kind": "overloaded"}}}}
"""A judge whose first answer fails."""

Sql = Callable[..., list[tuple[Any, ...]]]
"""Runs a statement as the owner."""


class Died(BaseException):
    """Who was at work is gone."""


class Heard:
    """Hints, kept."""

    def __init__(self) -> None:
        self.woken: list[UUID] = []
        self.nudged: list[UUID] = []

    async def wake(self, run: UUID) -> None:
        self.woken.append(run)

    async def wake_all(self, runs: Sequence[UUID]) -> None:
        self.woken += runs

    async def nudge(self, run: UUID) -> None:
        self.nudged.append(run)


def a_task(question: str = "What is the capital of Nowhere?", **more: Any) -> TaskSpec:
    return TaskSpec.model_validate({"question": question, "answers": [SECRET]} | more)


@dataclass
class Collector:
    """A client that collects, and the worker that does the work."""

    database: Database
    tenant: UUID = LOCAL_TENANT
    hints: Heard = field(default_factory=Heard)

    async def collect(
        self,
        *specs: TaskSpec,
        size: int = 2,
        scorers: Sequence[ScorerSpec] | None = None,
        engines: Mapping[str, EngineChoice] | None = None,
        **more: Any,
    ) -> Created:
        stored = await tasks.store(self.database, self.tenant, "test", specs or [a_task()])
        return await self.collect_ids(stored.ids, size, scorers, engines, **more)

    async def collect_ids(
        self,
        ids: Sequence[UUID],
        size: int = 1,
        scorers: Sequence[ScorerSpec] | None = None,
        engines: Mapping[str, EngineChoice] | None = None,
        **more: Any,
    ) -> Created:
        given: dict[str, Any] = {"budget": Budget(turns=2), **more}
        request = BatchRequest("counting", ids, size, engines or {}, scorers, **given)
        return await rollouts.create(self.database, self.hints, self.tenant, request, graphs=installed(ALL_GRAPHS))

    async def end(
        self,
        run: UUID,
        answer: str | None = None,
        *,
        reason: StopReason = StopReason.ANSWERED,
        status: RunStatus = RunStatus.DONE,
        citations: tuple[Citation, ...] = (),
    ) -> None:
        """The run, claimed and brought to its end. `answer` None: without a report."""
        claim = await runs.claim(self.database, run, "hands", TERM)
        assert claim is not None
        async with self.database.transaction(self.tenant) as connection:
            if answer is not None:
                draft = StepDraft(StepKind.REPORT, "Report", {})
                (step,) = await steps.append(connection, claim.fence, TERM, [draft], UsageDelta())
                await reports.insert(connection, claim.fence, step.seq, _report(answer, reason, citations))
            await steps.append(connection, claim.fence, TERM, [ended_step(status, reason)], UsageDelta())
            await runs.hand_back(connection, claim.fence, Release(status, reason))

    async def members(self) -> list[RolloutRow]:
        """Every rollout: batches as they were made, in them tasks by question, then members with their attempts."""
        found, _ = await rollouts.list_rollouts(self.database, self.tenant, RolloutFilter(), None, 1000)
        return sorted(found, key=lambda r: (r.batch, r.question, r.member, r.attempt))

    async def group(self) -> SeenGroup:
        """The only one."""
        ((group,), _) = await rollouts.list_groups(self.database, self.tenant, GroupFilter(), None, 10)
        return await rollouts.one_group(self.database, self.tenant, group.id)


def _report(answer: str, reason: StopReason, citations: tuple[Citation, ...]) -> Report:
    numbers = tuple(c.number for c in citations)
    sentence = Sentence("s1", answer, numbers)
    status = ReportStatus.COMPLETE if reason is StopReason.ANSWERED else ReportStatus.PARTIAL
    return Report("Report", status, reason, sentence if answer else None, (Section("", (sentence,)),), citations)


async def settled(collector: Collector, run: UUID) -> None:
    await settle(collector.database, collector.hints, collector.tenant, run)
