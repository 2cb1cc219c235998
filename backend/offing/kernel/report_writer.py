"""Reports of a run. Drafts are checked against the stored texts before they are recorded."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from offing.core.citation import ClaimContext, TextLookup, verify_citations, widen_span
from offing.core.claim_check import DraftClaimCheck, apply_claim_check
from offing.core.claim_passages import ClaimToJudge, list_claims
from offing.core.conclusions import mark_conclusions
from offing.core.draft_check import DraftCheck, check_draft
from offing.core.evidence import EvidenceIndex
from offing.core.follow_up import FollowUpKind, FollowUpOutcome
from offing.core.report import Report, ReportDraft, ReportRevision
from offing.core.report_comparison import compare_reports
from offing.core.report_editor import NO_MODEL_AUTHOR
from offing.core.run import RunStatus, StopReason
from offing.core.step import CallKey, Step, StepKind
from offing.core.tool import SourceSpan
from offing.core.trajectory import Outcome, classify_outcome
from offing.kernel import step_drafts
from offing.kernel.call_key import NodeCall
from offing.kernel.journal import Journal
from offing.kernel.report_author import author_from_step, extract_evidence_ids, is_report_draft
from offing.kernel.run_store import JournalEntry, ReportAttachment, ReportStore
from offing.kernel.segment_tracker import SegmentTracker
from offing.kernel.step_cache import MAX_CACHED_STEPS, StepCache
from offing.sdk import Role
from offing.sdk.earlier_report import FollowUpResult
from offing.telemetry.redaction import remove_secrets

SELF_ENDED_OUTCOMES = frozenset({Outcome.ANSWERED, Outcome.NO_ANSWER})
"""Outcomes of runs that ended on their own."""

REPORT_KINDS = frozenset({StepKind.REPORT})


class ReportWriter:
    """Checks and records the reports of one claim. With `is_first_claim`, the store has no reports."""

    def __init__(
        self,
        journal: Journal,
        cache: StepCache,
        segments: SegmentTracker,
        store: ReportStore,
        roles: Sequence[Role[Any, Any]],
        question: str,
        *,
        is_first_claim: bool,
    ) -> None:
        self._journal, self._cache, self._segments, self._store = journal, cache, segments, store
        self._roles, self._question, self._is_first_claim = roles, question, is_first_claim
        self._author = ""
        """Empty means that no author is known in this claim."""
        self._latest_report: Report | None = None
        """The latest report that this claim submitted."""
        self._has_begun_report = False
        """Whether this claim began to record a report, which may be stored even if its node was cancelled."""

    async def check_draft(self, draft: ReportDraft) -> DraftCheck:
        """Check a draft without recording anything."""
        draft = ReportDraft.model_validate(remove_secrets(draft.model_dump()))
        index = await self._get_evidence()
        return check_draft(draft, index.as_dict(), await self._load_cited_texts(draft, index), self._context(index))

    async def list_claims(self, draft: ReportDraft) -> tuple[ClaimToJudge, ...]:
        """Return the sentences of a draft that a checker can judge, without recording anything."""
        draft = ReportDraft.model_validate(remove_secrets(draft.model_dump()))
        index = await self._get_evidence()
        return list_claims(draft, index.as_dict(), await self._load_cited_texts(draft, index), self._context(index))

    async def submit_report(
        self,
        draft: ReportDraft,
        reason: StopReason,
        call: NodeCall,
        revision: ReportRevision | None = None,
        follow_up: FollowUpResult | None = None,
        check: DraftClaimCheck | None = None,
    ) -> Report:
        """Check and record a draft, and return the report. A recorded report is read back."""
        if step := self._journal.take_recorded(call, REPORT_KINDS):
            return await self._read_back(draft, reason, step, revision, follow_up, check)
        self._journal.check_new(call)
        entry = await self.prepare_final_report(draft, reason, call.key, revision, follow_up, check)
        self._has_begun_report = True
        await self._journal.append(entry)
        assert isinstance(entry.attachment, ReportAttachment)
        self._latest_report = entry.attachment.report
        return self._latest_report

    async def _read_back(
        self,
        draft: ReportDraft,
        reason: StopReason,
        step: Step,
        revision: ReportRevision | None,
        follow_up: FollowUpResult | None,
        check: DraftClaimCheck | None,
    ) -> Report:
        if self._journal.recorded_calls.is_comparing:
            entry = await self.prepare_report(draft, reason, revision=revision, follow_up=follow_up, check=check)
            assert isinstance(entry.attachment, ReportAttachment)
            self._journal.recorded_calls.compare_report(entry.attachment.report, step)
            return entry.attachment.report
        stored = await self.find_latest_report()
        assert stored is not None
        return stored

    async def find_latest_report(self) -> Report | None:
        """Return the latest report of the run. `None` means that there is none.

        If a branch was cancelled while its report was committed, the report is only in the store.
        """
        if self._latest_report is None and (self._has_begun_report or not self._is_first_claim):
            self._latest_report = await self._store.find_latest_report()
        return self._latest_report

    async def prepare_final_report(
        self,
        draft: ReportDraft,
        reason: StopReason,
        key: CallKey | None = None,
        revision: ReportRevision | None = None,
        follow_up: FollowUpResult | None = None,
        check: DraftClaimCheck | None = None,
    ) -> JournalEntry:
        """Prepare the final report of the graph, like `prepare_report`, and mark the last call of each role."""
        entry = await self.prepare_report(draft, reason, key, revision, follow_up, check)
        await self._segments.load()
        if classify_outcome(RunStatus.DONE, reason) not in SELF_ENDED_OUTCOMES:
            return entry
        assert isinstance(entry.attachment, ReportAttachment)
        return replace(
            entry, attachment=replace(entry.attachment, last_call_seqs=tuple(self._segments.list_latest_seqs()))
        )

    async def prepare_report(
        self,
        draft: ReportDraft,
        reason: StopReason,
        key: CallKey | None = None,
        revision: ReportRevision | None = None,
        follow_up: FollowUpResult | None = None,
        check: DraftClaimCheck | None = None,
    ) -> JournalEntry:
        """Return an entry for a draft with checked quotes, ready to append.

        `key` is `None` outside of any node, for a run that ended before its graph could write a report.
        """
        draft = ReportDraft.model_validate(remove_secrets(draft.model_dump()))
        index = await self._get_evidence()
        check = check and DraftClaimCheck.model_validate(remove_secrets(check.model_dump()))
        text_of = await self._load_cited_texts(draft, index, check)
        author, context = await self._get_author(), self._context(index)
        report = verify_citations(draft, index.as_dict(), text_of, reason, author, context)
        outcome = None if follow_up is None else build_outcome(follow_up, report)
        report = replace(report, revision=revision, follow_up=outcome)
        if check is not None:
            checker = await self._get_checker(check)
            report = apply_claim_check(report, draft, check, index.as_dict(), text_of, checker)
        report = mark_conclusions(report, context)
        return JournalEntry(step_drafts.draft_report(report, key), ReportAttachment(report))

    def _context(self, index: EvidenceIndex) -> ClaimContext:
        return ClaimContext(self._question, index.calculations)

    def note_author(self, role: Role[Any, Any], step: Step) -> None:
        """Store the author of an accepted draft, whether it is a whole report or a part of it."""
        if is_report_draft(role, step):
            self._author = author_from_step(step)

    async def _get_author(self) -> str:
        """Return the author of the report. After an earlier slice, the author is read from recorded steps."""
        if self._author or self._is_first_claim:
            return self._author or NO_MODEL_AUTHOR
        roles = {role.name: role for role in self._roles}
        user_texts = [
            s
            for kind in {r.step_kind for r in self._roles}
            for s in await self._cache.last_steps(kind, MAX_CACHED_STEPS)
        ]
        heard = [s for s in user_texts if (role := roles.get(s.payload.get("role", ""))) and is_report_draft(role, s)]
        return author_from_step(max(heard, key=lambda step: step.seq)) if heard else NO_MODEL_AUTHOR

    async def _get_checker(self, check: DraftClaimCheck) -> str:
        """Return the model of a checker's first answer. Empty means that it gave none."""
        steps = await self._cache.get_steps(check.replies[:1])
        return author_from_step(steps[0]) if steps else ""

    async def _get_evidence(self) -> EvidenceIndex:
        return await self._cache.get_evidence()

    async def _load_cited_texts(
        self, draft: ReportDraft, index: EvidenceIndex, check: DraftClaimCheck | None = None
    ) -> TextLookup:
        """Return a lookup for the stored texts of the passages that a draft cites and of what is around them.

        They include those that its checker names.
        """
        evidence = index.as_dict()
        ids = extract_evidence_ids(draft) | (extract_evidence_ids(check) if check else set[str]())
        spans = [evidence[id_].span for id_ in sorted(ids) if id_ in evidence]
        return await self._load_texts([*spans, *map(widen_span, spans)])

    async def _load_texts(self, spans: Sequence[SourceSpan]) -> TextLookup:
        """Return a lookup for the current stored texts of these spans. Empty means that a text was deleted."""
        stored_texts = await self._store.read_texts(spans) if spans else ()
        texts = {span: text or "" for span, text in zip(spans, stored_texts, strict=True)}
        return lambda span: texts.get(span, "")


def build_outcome(follow_up: FollowUpResult, report: Report) -> FollowUpOutcome:
    """Return what a report has to do with the earlier one, with its changes found by comparison."""
    earlier = follow_up.earlier
    is_new_version = follow_up.kind is not FollowUpKind.QUESTION
    return FollowUpOutcome(
        kind=follow_up.kind,
        chosen_by=follow_up.chosen_by,
        run_id=earlier.run_id,
        version=earlier.version,
        changes=compare_reports(earlier.report, report) if is_new_version else None,
        deleted_sources=earlier.deleted_sources,
        unchanged_because=follow_up.unchanged_because,
    )
