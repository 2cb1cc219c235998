"""Reports of a run: drafts are checked against the stored texts before they are recorded."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from offing.core.citation import check
from offing.core.evidence import EvidenceBook
from offing.core.report import Report, ReportDraft
from offing.core.run import RunStatus, StopReason
from offing.core.step import CallKey, Step, StepKind
from offing.core.tool import Span
from offing.core.trajectory import Outcome, outcome_of
from offing.kernel import drafts
from offing.kernel.authors import NO_MODEL, author_of, mentioned, wrote
from offing.kernel.call_key import Call
from offing.kernel.journal import Journal
from offing.kernel.segment_tracker import SegmentTracker
from offing.kernel.step_cache import MAX_STEPS, StepCache
from offing.kernel.store import Entry, ReportRecord, ReportStore
from offing.sdk import Role
from offing.telemetry.redaction import without_secrets

OWN_ACCORD = frozenset({Outcome.ANSWERED, Outcome.DONE})
"""Endings that are the run's own."""

REPORTS = frozenset({StepKind.REPORT})


class ReportWriter:
    """Checks and records the reports of one claim. `fresh`: the store has none."""

    def __init__(
        self,
        journal: Journal,
        cache: StepCache,
        segments: SegmentTracker,
        store: ReportStore,
        roles: Sequence[Role[Any, Any]],
        *,
        fresh: bool,
    ) -> None:
        self._journal, self._cache, self._segments, self._store = journal, cache, segments, store
        self._roles, self._fresh = roles, fresh
        self._author = ""
        """Empty: this claim has heard nobody write."""
        self._delivered: Report | None = None
        """The latest that this claim delivered."""

    async def deliver(self, draft: ReportDraft, reason: StopReason, call: Call) -> Report:
        """Check and record a draft, and return the report. On record already, it is read back."""
        if step := self._journal.take(call, REPORTS):
            return await self._read_back(draft, reason, step)
        self._journal.check_new(call)
        entry = await self.closing(draft, reason, call.key)
        await self._journal.append(entry)
        assert isinstance(entry.record, ReportRecord)
        self._delivered = entry.record.report
        return self._delivered

    async def _read_back(self, draft: ReportDraft, reason: StopReason, step: Step) -> Report:
        if self._journal.recorded.compares:
            entry = await self.checked(draft, reason)
            assert isinstance(entry.record, ReportRecord)
            self._journal.recorded.compare_report(entry.record.report, step)
            return entry.record.report
        found = await self.latest()
        assert found is not None
        return found

    async def latest(self) -> Report | None:
        """Return the report that the run has so far. `None` means that there is none.

        A branch that was cancelled as its report was committed has not said that it delivered one.
        """
        if self._delivered is None and not (self._fresh and not self._journal.has_written):
            self._delivered = await self._store.latest_report()
        return self._delivered

    async def closing(self, draft: ReportDraft, reason: StopReason, key: CallKey | None = None) -> Entry:
        """As `checked`, for a report that the graph itself came to: its roles' latest calls end with it."""
        entry = await self.checked(draft, reason, key)
        await self._segments.load()
        if outcome_of(RunStatus.DONE, reason) not in OWN_ACCORD:
            return entry
        assert isinstance(entry.record, ReportRecord)
        return replace(entry, record=replace(entry.record, last_calls=tuple(self._segments.latest())))

    async def checked(self, draft: ReportDraft, reason: StopReason, key: CallKey | None = None) -> Entry:
        """Return a draft with its quotes checked, ready to be appended.

        `key` None: outside any node, for a run that ended before its own generator could write.
        """
        draft = ReportDraft.model_validate(without_secrets(draft.model_dump()))
        pieces = (await self._book()).all()
        text_of = await self._texts([pieces[id_].span for id_ in mentioned(draft) if id_ in pieces])
        report = check(draft, pieces, text_of, reason, await self._written_by())
        return Entry(drafts.reported(report, key), ReportRecord(report))

    def note_author(self, role: Role[Any, Any], step: Step) -> None:
        """Remember who wrote a draft that was accepted, whether it is a whole answer or a part of one."""
        if wrote(role, step):
            self._author = author_of(step)

    async def _written_by(self) -> str:
        """Who wrote what is handed over; from the record where that was heard in an earlier slice."""
        if self._author or self._fresh:
            return self._author or NO_MODEL
        roles = {role.name: role for role in self._roles}
        said = [s for kind in {r.kind for r in self._roles} for s in await self._cache.last_of(kind, MAX_STEPS)]
        heard = [s for s in said if (role := roles.get(s.payload.get("role", ""))) and wrote(role, s)]
        return author_of(max(heard, key=lambda step: step.seq)) if heard else NO_MODEL

    async def _book(self) -> EvidenceBook:
        return await self._cache.evidence()

    async def _texts(self, spans: Sequence[Span]) -> Callable[[Span], str]:
        """The stored text of these spans, read now. Empty for what is not there any more."""
        found = await self._store.texts(spans) if spans else ()
        texts = {span: text or "" for span, text in zip(spans, found, strict=True)}
        return lambda span: texts.get(span, "")
