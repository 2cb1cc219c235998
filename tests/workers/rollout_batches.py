"""Batches of rollouts whose worker is the test itself: it ends each run as it likes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from offing.core.model import EngineConfig
from offing.core.report import Citation, Report, ReportStatus, Section, Sentence
from offing.core.run import Budget, RunStatus, StopReason
from offing.core.step import Step, StepDraft, StepKind
from offing.core.usage import UsageDelta
from offing.services import rollouts, tasks
from offing.services.graphs import open_registry
from offing.services.rollouts import BatchRequest, CreatedBatch, GroupWithScores, ScorerSpec
from offing.services.runs import draft_end_step
from offing.services.tasks import TaskSpec
from offing.storage import claims, reports, steps
from offing.storage.claims import Release
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Database
from offing.storage.rollout_batches import GroupFilter
from offing.storage.rollouts import RolloutFilter, RolloutRow
from offing_workers.rollout_finalizer import finalize_ended_rollout
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


class RecordingNotifier:
    """Records notifications instead of sending them."""

    def __init__(self) -> None:
        self.dispatched: list[UUID] = []
        self.controlled: list[UUID] = []

    async def dispatch_run(self, run_id: UUID) -> None:
        self.dispatched.append(run_id)

    async def dispatch_runs(self, run_ids: Sequence[UUID]) -> None:
        self.dispatched += run_ids

    async def notify_control(self, run_id: UUID) -> None:
        self.controlled.append(run_id)

    async def publish_steps(self, tenant_id: UUID, run_id: UUID, steps: Sequence[Step], /) -> None: ...


def a_task(question: str = "What is the capital of Nowhere?", **more: Any) -> TaskSpec:
    return TaskSpec.model_validate({"question": question, "answers": [SECRET]} | more)


@dataclass
class Collector:
    """A client that collects, and the worker that does the work."""

    database: Database
    tenant: UUID = LOCAL_TENANT
    notifier: RecordingNotifier = field(default_factory=RecordingNotifier)

    async def collect(
        self,
        *specs: TaskSpec,
        size: int = 2,
        scorers: Sequence[ScorerSpec] | None = None,
        engines: Mapping[str, EngineConfig] | None = None,
        **more: Any,
    ) -> CreatedBatch:
        stored = await tasks.store_tasks(self.database, self.tenant, "test", specs or [a_task()])
        return await self.collect_ids(stored.task_ids, size, scorers, engines, **more)

    async def collect_ids(
        self,
        ids: Sequence[UUID],
        size: int = 1,
        scorers: Sequence[ScorerSpec] | None = None,
        engines: Mapping[str, EngineConfig] | None = None,
        **more: Any,
    ) -> CreatedBatch:
        inputs: dict[str, Any] = {"budget": Budget(max_turns=2), **more}
        request = BatchRequest("counting", ids, size, engines or {}, scorers, **inputs)
        return await rollouts.create_batch(
            self.database, self.notifier, self.tenant, request, graphs=open_registry(ALL_GRAPHS)
        )

    async def end(
        self,
        run_id: UUID,
        answer: str | None = None,
        *,
        reason: StopReason = StopReason.ANSWERED,
        status: RunStatus = RunStatus.DONE,
        citations: tuple[Citation, ...] = (),
    ) -> None:
        """The run, claimed and brought to its end. `answer` None: without a report."""
        claim = await claims.claim_run(self.database, run_id, "hands", TERM)
        assert claim is not None
        async with self.database.transaction(self.tenant) as connection:
            if answer is not None:
                draft = StepDraft(StepKind.REPORT, "Report", {})
                (step,) = await steps.append_steps(connection, claim.fence, TERM, [draft], UsageDelta())
                await reports.insert_report(connection, claim.fence, step.seq, _report(answer, reason, citations))
            await steps.append_steps(connection, claim.fence, TERM, [draft_end_step(status, reason)], UsageDelta())
            await claims.release_run(connection, claim.fence, Release(status, reason))

    async def members(self) -> list[RolloutRow]:
        """Every rollout: batches as they were made, in them tasks by question, then members with their attempts."""
        result, _ = await rollouts.list_rollouts(self.database, self.tenant, RolloutFilter(), None, 1000)
        return sorted(result, key=lambda r: (r.batch_id, r.question, r.member, r.attempt))

    async def group(self) -> GroupWithScores:
        """The only one."""
        ((group,), _) = await rollouts.list_groups(self.database, self.tenant, GroupFilter(), None, 10)
        return await rollouts.get_group(self.database, self.tenant, group.id)


def _report(answer: str, reason: StopReason, citations: tuple[Citation, ...]) -> Report:
    numbers = tuple(c.number for c in citations)
    sentence = Sentence("s1", answer, numbers)
    status = ReportStatus.COMPLETE if reason is StopReason.ANSWERED else ReportStatus.PARTIAL
    return Report("Report", status, reason, sentence if answer else None, (Section("", (sentence,)),), citations)


async def wait_until_finalized(collector: Collector, run_id: UUID) -> None:
    await finalize_ended_rollout(collector.database, collector.notifier, collector.tenant, run_id)
