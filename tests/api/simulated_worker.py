"""A worker's part in tests of the API: it claims, appends, reports and releases through the same storage functions."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from offing.bus.live import LiveBus
from offing.core.report import Citation, Report, ReportStatus, Section, Sentence
from offing.core.run import FencingToken, RunStatus, StopReason
from offing.core.step import Step, StepDraft, StepKind
from offing.core.tool import SourceSpan
from offing.core.usage import UsageDelta
from offing.services import ingestion, library
from offing.services.runs import draft_end_step
from offing.storage import claims, reports, steps
from offing.storage.claims import Release
from offing.storage.pool import Database
from tests.documents import ingest_uploads

TERM = 30.0

TEXT = "# Salt\n\nRivers carry dissolved salt into the sea. The sun takes the water away and leaves the salt.\n"


@dataclass
class SimulatedWorker:
    database: Database
    tenant: UUID
    live: LiveBus

    async def claim(self, run_id: UUID) -> FencingToken:
        claim = await claims.claim_run(self.database, run_id, "hands", TERM)
        assert claim is not None
        return claim.fence

    async def append(
        self, fence: FencingToken, *drafts: StepDraft, tell: bool = True, spent: UsageDelta | None = None
    ) -> list[Step]:
        async with self.database.transaction(self.tenant) as connection:
            created = await steps.append_steps(connection, fence, TERM, drafts, spent or UsageDelta())
        if tell:
            await self.live.publish_steps(self.tenant, fence.run_id, created)
        return created

    async def notes(self, fence: FencingToken, titles: Sequence[str], *, tell: bool = True) -> list[Step]:
        return await self.append(fence, *(StepDraft(StepKind.NOTE, t, {"text": t}) for t in titles), tell=tell)

    async def end(self, fence: FencingToken, status: RunStatus = RunStatus.DONE, *, tell: bool = True) -> None:
        reason = StopReason.ANSWERED if status is RunStatus.DONE else StopReason.GRAPH_ERROR
        async with self.database.transaction(self.tenant) as connection:
            created = await steps.append_steps(connection, fence, TERM, [draft_end_step(status, reason)], UsageDelta())
            await claims.release_run(connection, fence, Release(status, reason))
        if tell:
            await self.live.publish_steps(self.tenant, fence.run_id, created)

    async def document(self, name: str = "salt.md", text: str | bytes = TEXT) -> UUID:
        """The id of a source with this text."""
        data = text.encode() if isinstance(text, str) else text
        (created,) = await ingest_uploads(self.database, self.tenant, [ingestion.Upload(name, data)])
        assert created.source_id is not None, created.problem
        return created.source_id

    async def report(
        self, fence: FencingToken, source_id: UUID, quote: str = "Rivers carry dissolved salt into the sea."
    ) -> Report:
        """A report that cites a quote of a source."""
        source = await library.get_source(self.database, self.tenant, source_id)
        whole = await library.get_passage_in_context(
            self.database, self.tenant, source.text_id, 0, source.length_chars, 0
        )
        start = whole.text.index(quote)
        citation = Citation(1, SourceSpan(source.text_id, start, start + len(quote)), quote, source_id, source.title)
        sentence = Sentence("s1", quote, (1,))
        report = Report(
            "Salt", ReportStatus.COMPLETE, StopReason.ANSWERED, sentence,
            (Section("Rivers", (replace(sentence, id="s2"), Sentence("s3", "Nobody knows more."))),), (citation,),
            "Quoted only.", "extractive",
        )  # fmt: skip
        async with self.database.transaction(self.tenant) as connection:
            draft = StepDraft(StepKind.REPORT, "Report", {})
            (step,) = await steps.append_steps(connection, fence, TERM, [draft], UsageDelta())
            await reports.insert_report(connection, fence, step.seq, report)
        await self.live.publish_steps(self.tenant, fence.run_id, [step])
        return report
