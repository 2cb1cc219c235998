"""A worker's part in tests of the API: it claims, appends, reports and lets go through the same storage functions."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from offing.bus.live import LiveBus
from offing.core.report import Citation, Report, ReportStatus, Section, Sentence
from offing.core.run import Fence, RunStatus, StopReason
from offing.core.step import Step, StepDraft, StepKind
from offing.core.tool import Span
from offing.core.usage import UsageDelta
from offing.services import library
from offing.services.runs import ended_step
from offing.storage import reports, runs, steps
from offing.storage.pool import Database
from offing.storage.runs import Release
from tests.documents import ingest_uploads

TERM = 30.0

TEXT = "# Salt\n\nRivers carry dissolved salt into the sea. The sun takes the water away and leaves the salt.\n"


@dataclass
class Hands:
    database: Database
    tenant: UUID
    live: LiveBus

    async def claim(self, run: UUID) -> Fence:
        claim = await runs.claim(self.database, run, "hands", TERM)
        assert claim is not None
        return claim.fence

    async def append(
        self, fence: Fence, *drafts: StepDraft, tell: bool = True, spent: UsageDelta | None = None
    ) -> list[Step]:
        async with self.database.transaction(self.tenant) as connection:
            made = await steps.append(connection, fence, TERM, drafts, spent or UsageDelta())
        if tell:
            await self.live.steps(self.tenant, fence.run, made)
        return made

    async def notes(self, fence: Fence, titles: Sequence[str], *, tell: bool = True) -> list[Step]:
        return await self.append(fence, *(StepDraft(StepKind.NOTE, t, {"text": t}) for t in titles), tell=tell)

    async def end(self, fence: Fence, status: RunStatus = RunStatus.DONE, *, tell: bool = True) -> None:
        reason = StopReason.ANSWERED if status is RunStatus.DONE else StopReason.GRAPH_ERROR
        async with self.database.transaction(self.tenant) as connection:
            made = await steps.append(connection, fence, TERM, [ended_step(status, reason)], UsageDelta())
            await runs.hand_back(connection, fence, Release(status, reason))
        if tell:
            await self.live.steps(self.tenant, fence.run, made)

    async def document(self, name: str = "salt.md", text: str = TEXT) -> UUID:
        """The id of a source with this text."""
        (made,) = await ingest_uploads(self.database, self.tenant, [library.Upload(name, text.encode())])
        assert made.source is not None, made.problem
        return made.source

    async def report(
        self, fence: Fence, source: UUID, quote: str = "Rivers carry dissolved salt into the sea."
    ) -> Report:
        """A report that cites a quote of a source."""
        found = await library.source(self.database, self.tenant, source)
        whole = await library.passage_in_context(self.database, self.tenant, found.artefact, 0, found.length, 0)
        start = whole.text.index(quote)
        citation = Citation(1, Span(found.artefact, start, start + len(quote)), quote, source, found.title)
        sentence = Sentence("s1", quote, (1,))
        report = Report(
            "Salt", ReportStatus.COMPLETE, StopReason.ANSWERED, sentence,
            (Section("Rivers", (replace(sentence, id="s2"), Sentence("s3", "Nobody knows more."))),), (citation,),
            "Quoted only.", "extractive",
        )  # fmt: skip
        async with self.database.transaction(self.tenant) as connection:
            draft = StepDraft(StepKind.REPORT, "Report", {})
            (step,) = await steps.append(connection, fence, TERM, [draft], UsageDelta())
            await reports.insert(connection, fence, step.seq, report)
        await self.live.steps(self.tenant, fence.run, [step])
        return report
