"""From what services return to what goes over the wire. Pure; the other way round is in the routes."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from offing.api.schemas import (
    BudgetIn,
    CitationOut,
    HitOut,
    LiveOut,
    PassageOut,
    RatingOut,
    ReportOut,
    RunDetail,
    RunOut,
    ScopeIn,
    SectionOut,
    SentenceOut,
    SourceOut,
    SpentOut,
    StepDetail,
    StepOut,
    TenantOut,
    ThreadOut,
)
from offing.core.report import Citation, Sentence
from offing.core.run import Budget, RunStatus, StopReason
from offing.core.step import Step
from offing.services.library import InContext
from offing.services.views import DetailedRun, Live, Thread
from offing.storage.library import SourceRow
from offing.storage.reports_read import ReadReport
from offing.storage.rewards import RewardRow
from offing.storage.runs import RunRow
from offing.storage.search import HitRow
from offing.storage.views import ShownRun, TenantRow

WAITS = frozenset({RunStatus.QUEUED, RunStatus.WAITING, RunStatus.PAUSED})


def run_out(run: RunRow, title: str | None = None, questions: int = 0) -> RunOut:
    spent = run.spent
    return RunOut(
        id=run.id,
        thread_id=run.thread,
        question=run.question,
        graph=run.graph,
        graph_version=run.graph_version,
        status=run.status,
        stop_reason=run.stop_reason,
        waiting_for=run.waiting_for,
        waiting_since=run.waiting_since if run.status in WAITS else None,
        error=run.error,
        # What only an engine knows may be long, and is nobody else's business.
        engines={role: choice.model_copy(update={"options": {}}) for role, choice in run.engines.items()},
        scope=_scope(run.scope),
        budget=_budget(run.budget),
        spent=SpentOut(turns=spent.turns, tokens=spent.tokens, usd=float(spent.usd), seconds=spent.seconds),
        deadline=run.deadline,
        last_seq=run.last_seq,
        created_at=run.created_at,
        started_at=run.started_at,
        ended_at=run.ended_at,
        title=title,
        questions=questions,
        forked_from=run.forked_from,
        forked_at=run.forked_at,
    )


def _scope(stored: Mapping[str, Any]) -> ScopeIn:
    """What a person can choose of a stored scope; as it is stored, also where a limit was lowered since."""
    chosen = {name: stored[name] for name in ScopeIn.model_fields if name in stored}
    sources = [UUID(str(source)) for source in chosen.get("sources", ())]
    return ScopeIn.model_construct(None, **{**ScopeIn().model_dump(), **chosen, "sources": sources})


def shown_out(shown: ShownRun) -> RunOut:
    return run_out(shown.run, shown.title, shown.questions)


def detail_out(detail: DetailedRun) -> RunDetail:
    brief = shown_out(detail.shown)
    known = {name: getattr(brief, name) for name in RunOut.model_fields}
    return RunDetail.model_construct(**known, live=live_out(detail.live), marks=detail.marks)


def live_out(live: Live | None) -> LiveOut | None:
    return live and LiveOut(doing=live.doing.text, since=live.doing.since, worker_seen=live.worker_seen)


def step_out(run: UUID, step: Step) -> StepOut:
    return StepOut(
        run_id=run,
        seq=step.seq,
        kind=step.kind,
        label=step.label,
        title=step.title,
        detail=step.detail,
        ok=step.ok,
        ms=step.ms,
        tokens=step.tokens,
        turn=step.turn,
        at=step.at,
    )


def step_detail(run: UUID, step: Step) -> StepDetail:
    return StepDetail(**step_out(run, step).model_dump(), payload=dict(step.payload))


def thread_out(thread: Thread) -> ThreadOut:
    row = thread.thread
    return ThreadOut(
        id=row.id, title=row.title, created_at=row.created_at, runs=[shown_out(run) for run in thread.runs]
    )


def report_out(run: UUID, read: ReadReport) -> ReportOut:
    report = read.report
    return ReportOut(
        run_id=run,
        version=read.version,
        status=report.status.value,
        reason=StopReason(report.reason),
        title=report.title,
        answer=None if report.answer is None else _sentence(report.answer),
        sections=[SectionOut(heading=s.heading, sentences=[*map(_sentence, s.sentences)]) for s in report.sections],
        citations=[_citation(read, c) for c in report.citations],
        limits=report.limits,
        written_by=report.written_by,
        created_at=read.created_at,
    )


def rating_out(reward: RewardRow) -> RatingOut:
    return RatingOut(
        id=reward.id,
        run_id=reward.run,
        report_version=reward.report,
        claim=reward.claim,
        scorer=reward.scorer,
        version=reward.version,
        value=reward.value,
        correction=reward.correction,
        created_at=reward.created_at,
    )


def source_out(source: SourceRow) -> SourceOut:
    return SourceOut(
        id=source.id,
        collection=source.collection,
        name=source.name,
        title=source.title,
        media_type=source.media_type,
        bytes=source.size,
        length=source.length,
        artefact_id=source.artefact,
        snapshot=source.snapshot.hex(),
        added_at=source.added_at,
    )


def hit_out(hit: HitRow) -> HitOut:
    return HitOut(
        artefact_id=hit.artefact,
        source_id=hit.source,
        title=hit.title,
        heading=hit.heading,
        start=hit.start,
        end=hit.end,
        text=hit.text,
        score=hit.score,
    )


def passage_out(found: InContext) -> PassageOut:
    return PassageOut(
        artefact_id=found.artefact,
        source_id=found.source,
        title=found.title,
        name=found.name,
        start=found.start,
        end=found.end,
        before=found.before,
        text=found.text,
        after=found.after,
        snapshot=found.snapshot.hex(),
    )


def tenant_out(tenant: TenantRow) -> TenantOut:
    cap = tenant.daily_spend_usd
    return TenantOut(
        name=tenant.name,
        training_opt_in=tenant.training_opt_in,
        daily_spend_usd=None if cap is None else float(cap),
        spent_today_usd=float(tenant.spent_today_usd),
    )


def _budget(budget: Budget) -> BudgetIn:
    # Not validated: a run submitted by other ways than this API may have limits that a page would not send.
    usd = None if budget.usd is None else float(budget.usd)
    return BudgetIn.model_construct(turns=budget.turns, tokens=budget.tokens, usd=usd, seconds=budget.seconds)


def _sentence(sentence: Sentence) -> SentenceOut:
    return SentenceOut(
        id=sentence.id,
        text=sentence.text,
        citations=list(sentence.citations),
        supported=sentence.supported,
        rejected=list(sentence.rejected),
    )


def _citation(read: ReadReport, citation: Citation) -> CitationOut:
    return CitationOut(
        number=citation.number,
        artefact_id=None if citation.number in read.erased else citation.span.artefact,
        source_id=citation.source,
        title=citation.title,
        start=citation.span.start,
        end=citation.span.end,
        quote=citation.quote,
        verified=citation.number not in read.unverified,
    )
