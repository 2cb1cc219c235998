"""Serialize the values of services to API schemas. The opposite direction is in the routes."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import lru_cache
from typing import Any
from uuid import UUID

from offing.api.coded_texts import (
    serialize_position_part,
    serialize_rejection_text,
    serialize_run_texts,
    serialize_step_text,
)
from offing.api.schemas.library import LibraryStatusOut, PassageOut, SearchHitOut, SourceOut, VectorCoverageOut
from offing.api.schemas.platform import ModelDetailsOut, TenantOut
from offing.api.schemas.reports import (
    CitationOut,
    CitedSourceOut,
    ClaimCheckOut,
    ConflictOut,
    FollowUpOutcomeOut,
    JudgmentOut,
    ReportOut,
    RevisionOut,
    SectionOut,
    SentenceOut,
    VersionOfOut,
)
from offing.api.schemas.run_requests import BudgetIn, ScopeIn
from offing.api.schemas.runs import (
    AnswerDraftOut,
    FollowUpOut,
    LiveStatusOut,
    MarkOut,
    RatingOut,
    RunDeletionOut,
    RunDetail,
    RunMatchOut,
    RunOut,
    RunPage,
    ThreadOut,
    TokenDetailsOut,
    UsageOut,
)
from offing.api.schemas.steps import StepDetail, StepOut, StepSummaryOut
from offing.core.answer_draft import DraftPart
from offing.core.claim_table import list_marks
from offing.core.langgraph_run import LANGGRAPH
from offing.core.model import EngineConfig, describe_engine, hide_options
from offing.core.report import Citation, Sentence
from offing.core.report_editor import find_editor
from offing.core.report_sources import (
    ReportSource,
    describe_position,
    describe_source,
    find_site,
    list_position_parts,
    list_report_sources,
    map_source_labels,
)
from offing.core.run import Budget, RunStatus, StopReason
from offing.core.step import Step
from offing.core.step_codes import StepSummary
from offing.core.step_summary import summarize_step
from offing.core.step_texts import find_detail_parts, find_title
from offing.library.word_query import locate_terms, parse_word_query
from offing.models.model_table import find_model_limits, find_model_price
from offing.services.library import PassageInContext
from offing.services.library_models import LibraryModels
from offing.services.reports import AnalyzedReport
from offing.services.run_deletion import DeletionResult
from offing.services.run_lists import RunList
from offing.services.run_search import RunMatch
from offing.services.run_summaries import LiveStatus, RunWithLiveStatus
from offing.services.threads import ThreadWithRuns
from offing.storage.library import SourceRow
from offing.storage.reports import VerifiedReport
from offing.storage.rewards import RewardRow
from offing.storage.run_summaries import RunSummary
from offing.storage.search import PassageHitRow
from offing.storage.tenants import TenantRow
from offing.storage.vectors import VectorCoverage

WAITING_STATUSES = frozenset({RunStatus.QUEUED, RunStatus.WAITING, RunStatus.PAUSED})


UNLIMITED_SCOPE = ScopeIn()
"""The scope of a run that chose none. It is shared and must not be changed."""


def serialize_run_summary(summary: RunSummary, match: RunMatchOut | None = None, minimap: str | None = None) -> RunOut:
    # Not validated: a page has fifty runs, and each value has its type since it was read from the database.
    run, labels = summary.run, summary.labels
    spent, follow_up = run.usage, run.follow_up
    return RunOut.from_typed_values(
        id=run.id,
        thread_id=run.thread_id,
        question=run.question,
        graph=run.graph,
        graph_version=run.graph_version,
        status=run.status,
        stop_reason=run.stop_reason,
        waiting_for=run.waiting_for,
        waiting_since=run.waiting_since if run.status in WAITING_STATUSES else None,
        error=run.error,
        texts=serialize_run_texts(waiting_for=run.waiting_for, error=run.error),
        # Engine options may be long and may be private to the engine, so they are not returned.
        engines={role: hide_options(choice) for role, choice in run.engines.items()},
        scope=_serialize_scope(run.scope),
        budget=_serialize_budget(run.budget),
        usage=UsageOut.from_typed_values(
            turns=spent.turns, tokens=spent.tokens, cost_usd=float(spent.cost_usd), seconds=spent.seconds
        ),
        deadline=run.deadline_at,
        last_seq=run.last_seq,
        created_at=run.created_at,
        started_at=run.started_at,
        ended_at=run.ended_at,
        title=summary.title,
        given_title=labels.title,
        tags=list(labels.tags),
        pinned_at=labels.pinned_at,
        archived_at=labels.archived_at,
        pending_input_requests=summary.pending_input_requests,
        interrupted=summary.is_interrupted,
        thread_runs=summary.thread_run_count,
        forked_from_id=run.forked_from,
        forked_at_seq=run.forked_at,
        report_style=run.report_style,
        interactions=sorted(run.interactions),
        protocol="langgraph" if run.protocol == LANGGRAPH else None,
        match=match,
        minimap=minimap,
        follow_up=follow_up
        and FollowUpOut.model_construct(kind=follow_up.kind, run_id=follow_up.run_id, version=follow_up.version),
    )


def _serialize_scope(stored: Mapping[str, Any]) -> ScopeIn:
    """Return the part of a stored scope that a person can choose, unchanged even if a limit was lowered since."""
    chosen = {name: stored[name] for name in ScopeIn.model_fields if name in stored}
    if not any(chosen.values()):
        return UNLIMITED_SCOPE
    sources = [UUID(str(source)) for source in chosen.get("sources", ())]
    return ScopeIn.model_construct(None, **(UNLIMITED_SCOPE.model_dump() | chosen | {"sources": sources}))


def serialize_model_details(model: str) -> ModelDetailsOut | None:
    """Return what the model table says about a model. `None` means that it does not list the model."""
    limits, price = find_model_limits(model), find_model_price(model)
    if not limits.is_listed:
        return None
    return ModelDetailsOut(
        model=model,
        context_tokens=limits.context_tokens,
        input_usd=price.input_usd,
        output_usd=price.output_usd,
    )


def serialize_run_list(listed: RunList) -> RunPage:
    matches = {run_id: _serialize_match(match) for run_id, match in listed.matches.items()}
    pinned, items = (
        [serialize_run_summary(one, matches.get(one.run.id), listed.minimaps.get(one.run.id)) for one in group]
        for group in (listed.pinned, listed.runs)
    )
    return RunPage(
        items=items,
        pinned=pinned,
        has_more_pinned=listed.has_more_pinned,
        next=listed.next_cursor,
        unindexed_runs=listed.unindexed_count,
    )


def _serialize_match(match: RunMatch) -> RunMatchOut:
    return RunMatchOut(
        location=match.location,
        excerpt=match.excerpt,
        marks=_serialize_marks(match.marks),
        question_marks=_serialize_marks(match.question_marks),
        title_marks=_serialize_marks(match.title_marks),
    )


def _serialize_marks(marks: Sequence[tuple[int, int]]) -> list[MarkOut]:
    return [MarkOut(start=start, end=end) for start, end in marks]


def serialize_deletion(result: DeletionResult) -> RunDeletionOut:
    return RunDeletionOut(
        run_ids=list(result.run_ids), child_runs=result.child_run_count, kept_fork_ids=list(result.fork_ids)
    )


def serialize_run_detail(detail: RunWithLiveStatus) -> RunDetail:
    brief = serialize_run_summary(detail.summary)
    fields = {name: getattr(brief, name) for name in RunOut.model_fields}
    details = detail.token_details and TokenDetailsOut(**asdict(detail.token_details))
    live = serialize_live_status(detail.live)
    return RunDetail.model_construct(**fields, live=live, step_marks=detail.step_marks, token_details=details)


def serialize_draft(run_id: UUID, part: DraftPart) -> AnswerDraftOut:
    draft = part.draft
    return AnswerDraftOut(
        run_id=run_id,
        call_id=draft.call_id,
        attempt=draft.attempt,
        role=draft.role,
        label=draft.label,
        is_unverified=draft.is_unverified,
        offset=part.offset,
        text=part.text,
    )


def serialize_live_status(live: LiveStatus | None) -> LiveStatusOut | None:
    return live and LiveStatusOut(
        current_action=live.current_action.text,
        since=live.current_action.started_at,
        worker_heartbeat_at=live.worker_heartbeat_at,
    )


def serialize_step(run_id: UUID, step: Step) -> StepOut:
    summary = summarize_step(step) if step.summary is None else step.summary
    title_text = find_title(step) if summary is None else None
    detail_parts = find_detail_parts(step) if summary is None else ()
    return StepOut(
        run_id=run_id,
        seq=step.seq,
        kind=step.kind,
        label=step.label,
        title=step.title,
        detail=step.detail,
        summary=_serialize_step_summary(summary),
        title_text=title_text and serialize_step_text(title_text),
        detail_texts=[*map(serialize_step_text, detail_parts)],
        ok=step.ok,
        ms=step.ms,
        tokens=step.tokens,
        turn=step.turn,
        at=step.at,
    )


def _serialize_step_summary(summary: StepSummary | None) -> StepSummaryOut | None:
    return summary and StepSummaryOut(code=summary.code, parameters=dict(summary.parameters))


def serialize_step_detail(run_id: UUID, step: Step) -> StepDetail:
    return StepDetail(**serialize_step(run_id, step).model_dump(), payload=dict(step.payload))


def serialize_thread(thread: ThreadWithRuns) -> ThreadOut:
    row = thread.thread
    return ThreadOut(
        id=row.id, title=row.title, created_at=row.created_at, runs=[serialize_run_summary(run) for run in thread.runs]
    )


def serialize_report(run_id: UUID, analyzed: AnalyzedReport) -> ReportOut:
    stored, analysis = analyzed.stored, analyzed.analysis
    report, labels = stored.report, map_source_labels(stored.report)
    return ReportOut(
        run_id=run_id,
        version=stored.version,
        status=report.status.value,
        reason=StopReason(report.stop_reason),
        title=report.title,
        answer=None if report.answer is None else _serialize_sentence(report.answer),
        sections=[
            SectionOut(heading=s.heading, sentences=[*map(_serialize_sentence, s.sentences)]) for s in report.sections
        ],
        citations=[_serialize_citation(stored, c, labels[c.number]) for c in report.citations],
        sources=[_serialize_cited_source(source) for source in list_report_sources(report)],
        limitations=report.limits,
        author=report.written_by,
        revision=None if report.revision is None else RevisionOut(**asdict(report.revision)),
        follow_up=None if report.follow_up is None else FollowUpOutcomeOut.model_validate(asdict(report.follow_up)),
        check=None if report.check is None else ClaimCheckOut(**asdict(report.check)),
        judged_by=analysis.judged_by,
        conflicts=[
            ConflictOut(matter=c.matter, found_by=c.found_by, citations=list(c.citations)) for c in analysis.conflicts
        ],
        conflict_search=analysis.conflict_search,
        texts=serialize_run_texts(
            author=report.written_by, judged_by=analysis.judged_by, conflict_search=analysis.conflict_search
        ),
        edited_by=report.edit.by if report.edit else None,
        editor=find_editor(report.edit.by, report.edit.run_id) if report.edit else None,
        follow_up_run_id=report.edit.run_id if report.edit else None,
        note=report.edit.note if report.edit else "",
        base_version=report.edit.base_version if report.edit else None,
        latest_version=stored.latest_version,
        version_of=None if stored.became is None else VersionOfOut(**asdict(stored.became)),
        created_at=stored.created_at,
    )


def serialize_rating(reward: RewardRow) -> RatingOut:
    return RatingOut(
        id=reward.id,
        run_id=reward.run_id,
        report_version=reward.report_version,
        sentence_id=reward.sentence_id,
        scorer=reward.scorer,
        version=reward.version,
        value=reward.value,
        correction=reward.correction,
        created_at=reward.created_at,
    )


def serialize_source(source: SourceRow) -> SourceOut:
    return SourceOut(
        id=source.id,
        collection=source.collection,
        name=source.name,
        title=source.title,
        media_type=source.media_type,
        size_bytes=source.size_bytes,
        char_count=source.length_chars,
        text_id=source.text_id,
        snapshot=source.snapshot_sha256.hex(),
        added_at=source.added_at,
    )


def serialize_search_hits(hits: Sequence[PassageHitRow], query: str) -> list[SearchHitOut]:
    """Return hits with the words of the query marked. It compares each word of a passage, so it takes some time.

    The query ends with a complete word, also while a person types it: a passage is found by complete words.
    """
    words = parse_word_query(f"{query} ")
    return [_serialize_search_hit(hit, locate_terms(words, hit.text)) for hit in hits]


def _serialize_search_hit(hit: PassageHitRow, marks: Sequence[tuple[int, int]]) -> SearchHitOut:
    return SearchHitOut(
        text_id=hit.text_id,
        source_id=hit.source_id,
        title=hit.title,
        heading=hit.heading,
        start=hit.start,
        end=hit.end,
        text=hit.text,
        marks=_serialize_marks(marks),
        score=hit.score,
    )


def serialize_library_status(coverage: VectorCoverage, models: LibraryModels) -> LibraryStatusOut:
    embedding = (
        None
        if models.embedder is None
        else VectorCoverageOut(
            model=models.embedder.key,
            dimensions=coverage.dimensions,
            filled_count=coverage.filled_count,
            rejected_count=coverage.rejected_count,
        )
    )
    return LibraryStatusOut(text_count=coverage.text_count, embedding=embedding, reranks=models.reranker is not None)


def serialize_passage(passage: PassageInContext) -> PassageOut:
    return PassageOut(
        text_id=passage.text_id,
        source_id=passage.source_id,
        title=passage.title,
        name=passage.name,
        start=passage.start,
        end=passage.end,
        before=passage.before,
        text=passage.text,
        after=passage.after,
        snapshot=passage.snapshot.hex(),
        char_count=passage.text_length,
    )


def serialize_tenant(tenant: TenantRow, default_engine: EngineConfig) -> TenantOut:
    cap = tenant.max_daily_spend_usd
    return TenantOut(
        name=tenant.name,
        training_opt_in=tenant.training_opt_in,
        max_daily_spend_usd=None if cap is None else float(cap),
        spent_today_usd=float(tenant.spent_today_usd),
        default_preset=tenant.default_preset,
        default_engine=describe_engine(default_engine),
    )


@lru_cache(maxsize=1024)
def _serialize_budget(budget: Budget) -> BudgetIn:
    """Return the limits of a run. Runs with equal limits share the object, which must not be changed."""
    # Not validated: a run that was not submitted through this API may have limits that the web UI would not send.
    usd = None if budget.max_cost_usd is None else float(budget.max_cost_usd)
    return BudgetIn.model_construct(
        max_turns=budget.max_turns,
        max_tokens=budget.max_tokens,
        max_cost_usd=usd,
        max_seconds=budget.max_seconds,
        depth=budget.depth,
    )


def _serialize_sentence(sentence: Sentence) -> SentenceOut:
    return SentenceOut(
        id=sentence.id,
        text=sentence.text,
        citations=list(sentence.citations),
        supported=sentence.is_supported,
        rejected=list(sentence.rejected),
        rejected_texts=[serialize_rejection_text(text) for text in sentence.rejected],
        layout=sentence.layout.value,
        passages=list(sentence.passages),
        unsupported_values=list(sentence.unsupported_values),
        verdict=sentence.verdict.value if sentence.verdict else None,
        rule_verdict=sentence.rule_verdict.value if sentence.rule_verdict else None,
        judgment=None if sentence.judgment is None else JudgmentOut(**asdict(sentence.judgment)),
        reasons=list(list_marks(sentence)),
        edited=sentence.is_edited,
        follows_from=list(sentence.conclusion.sentences) if sentence.conclusion and not sentence.is_claim else [],
    )


def _serialize_cited_source(source: ReportSource) -> CitedSourceOut:
    details = source.details
    return CitedSourceOut(
        id=source.id,
        source_id=source.source_id,
        title=source.title,
        name=details.name,
        site=find_site(details),
        author=details.author,
        published=details.published,
        retrieved_at=details.retrieved_at,
        description=describe_source(source),
        citations=[citation.number for citation in source.citations],
    )


def _serialize_citation(report: VerifiedReport, citation: Citation, source_label: str) -> CitationOut:
    return CitationOut(
        number=citation.number,
        text_id=None if citation.number in report.erased_citations else citation.span.text_id,
        source_id=citation.source_id,
        title=citation.title,
        start=citation.span.start,
        end=citation.span.end,
        quote=citation.quote,
        verified=citation.number not in report.unverified_citations,
        source=source_label,
        position=describe_position(citation),
        position_texts=[serialize_position_part(part) for part in list_position_parts(citation)],
    )
