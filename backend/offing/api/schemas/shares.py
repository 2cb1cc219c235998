"""API schemas of share links and of the reports that they show, and their serializers."""

from datetime import UTC, datetime, timedelta
from typing import Annotated, Literal, Self
from uuid import UUID

from pydantic import AwareDatetime, Field, StringConstraints, model_validator

from offing.api.coded_texts import TEXTS, PositionTextOut, RunTextOut
from offing.api.schemas.base import ApiModel, Page
from offing.api.schemas.reports import ClaimCheckOut, ConflictOut, SectionOut, SentenceOut
from offing.api.serializers import serialize_report
from offing.core.bibliography import find_web_address
from offing.core.claim_table import ClaimAnalysis
from offing.core.report_sources import list_report_sources
from offing.core.run import StopReason
from offing.services.report_shares import DEFAULT_DAYS, MAX_DAYS, CreatedShare, SharedReport, ShareRequest
from offing.services.reports import AnalyzedReport
from offing.storage.report_shares import ShareRow

Label = Annotated[str, StringConstraints(strip_whitespace=True, max_length=200)]


class ShareIn(ApiModel):
    """A share link to create. It shows one version of the report and does not follow later ones."""

    days: int | None = Field(
        default=None, ge=1, le=MAX_DAYS, description=f"Days until the link expires. null: {DEFAULT_DAYS}."
    )
    expires_at: AwareDatetime | None = Field(
        default=None, description="When the link expires, instead of `days`: within a year."
    )
    version: int | None = Field(
        default=None, ge=1, le=2**31 - 1, description="Version of the report. null: the latest."
    )
    label: Label = Field(default="", description="What the link is for. Readers do not see it.")
    shows_question: bool = Field(default=True, description="false: readers do not see the question of the run.")

    @model_validator(mode="after")
    def _check_expiry(self) -> Self:
        if self.days is not None and self.expires_at is not None:
            raise ValueError("send either days or expires_at")
        return self


class ShareOut(ApiModel):
    """A share link as its owner sees it. Its token is not stored and cannot be shown again."""

    id: UUID
    run_id: UUID
    version: int = Field(description="Version of the report that the link shows.")
    report_title: str
    label: str = Field(description="Empty: none.")
    shows_question: bool
    state: Literal["open", "expired", "revoked"]
    created_at: datetime
    expires_at: datetime
    revoked_at: datetime | None = Field(description="null: it was not revoked.")
    last_opened_at: datetime | None = Field(description="null: it was never opened.")
    opened_count: int = Field(description="How often the report was opened. Downloads are not counted.")


class SharePage(Page):
    items: list[ShareOut]


class CreatedShareOut(ApiModel):
    """A new share link with its token, which is returned only here."""

    share: ShareOut
    token: str
    path: str = Field(description="Address of the page for readers, below the address of the web UI.")


class SharedCitationOut(ApiModel):
    """A quote of a shared report."""

    number: int
    title: str
    quote: str
    verified: bool = Field(description="Whether the quote is in the stored text now.")
    erased: bool = Field(description="Whether the source was erased.")
    source: str = Field(description="Short id of the source in the list of sources, such as S1.")
    position: str = Field(description="Where in the source it is, in words. Empty: unknown.")
    position_texts: list[PositionTextOut] = Field(description="What the parts of the position say. Empty: unknown.")


class SharedSourceOut(ApiModel):
    """A source of a shared report."""

    id: str = Field(description="S1, S2 and so on.")
    title: str
    url: str = Field(description="Address of a public web page. Empty: the source is none.")
    site: str = Field(description="Host of a public web page. Empty: the source is none.")
    author: str = Field(description="Empty: unknown.")
    published: str = Field(description="Date of the document: YYYY, YYYY-MM or YYYY-MM-DD. Empty: unknown.")
    retrieved_at: datetime | None = Field(description="When a public web page was retrieved. null: unknown.")
    description: str = Field(description="What is known about the source besides its title, in words.")
    citations: list[int] = Field(description="Numbers of its citations.")


class SharedReportOut(ApiModel):
    """A report as readers of its link get it: without ids of run, tenant and library."""

    question: str | None = Field(description="null: the owner left it out.")
    version: int
    status: Literal["complete", "partial"]
    reason: StopReason
    title: str
    answer: SentenceOut | None
    sections: list[SectionOut]
    citations: list[SharedCitationOut]
    sources: list[SharedSourceOut]
    limitations: str
    author: str = Field(description="Engine and model that wrote it.")
    check: ClaimCheckOut | None
    judged_by: str
    conflicts: list[ConflictOut]
    conflict_search: str
    texts: dict[str, RunTextOut] = Field(default={}, description=f"{TEXTS} Fields: author, judged_by, conflict_search.")
    created_at: datetime
    expires_at: datetime = Field(description="When the link stops working.")


def build_share_request(run_id: UUID, body: ShareIn) -> ShareRequest:
    ends = body.expires_at if body.days is None else datetime.now(UTC) + timedelta(days=body.days)
    return ShareRequest(run_id, body.version, ends, body.label, body.shows_question)


def serialize_share(row: ShareRow) -> ShareOut:
    ended = "expired" if row.expires_at <= datetime.now(UTC) else "open"
    return ShareOut(
        id=row.id,
        run_id=row.run_id,
        version=row.report_version,
        report_title=row.report_title,
        label=row.label,
        shows_question=row.shows_question,
        state="revoked" if row.revoked_at else ended,
        created_at=row.created_at,
        expires_at=row.expires_at,
        revoked_at=row.revoked_at,
        last_opened_at=row.last_opened_at,
        opened_count=row.opened_count,
    )


def serialize_created_share(created: CreatedShare) -> CreatedShareOut:
    return CreatedShareOut(share=serialize_share(created.row), token=created.token, path=created.path)


def serialize_shared_report(shared: SharedReport, analysis: ClaimAnalysis) -> SharedReportOut:
    report = serialize_report(UUID(int=0), AnalyzedReport(shared.read, analysis))
    erased = shared.read.erased_citations
    urls = {source.id: find_web_address(source.details) for source in list_report_sources(shared.read.report)}
    return SharedReportOut(
        question=shared.question,
        version=report.version,
        status=report.status,
        reason=report.reason,
        title=report.title,
        answer=report.answer,
        sections=report.sections,
        citations=[
            SharedCitationOut(
                number=c.number,
                title=c.title,
                quote=c.quote,
                verified=c.verified,
                erased=c.number in erased,
                source=c.source,
                position=c.position,
                position_texts=c.position_texts,
            )
            for c in report.citations
        ],
        sources=[
            SharedSourceOut(
                id=s.id,
                title=s.title,
                url=urls[s.id],
                site=s.site,
                author=s.author,
                published=s.published,
                retrieved_at=s.retrieved_at,
                description=s.description,
                citations=s.citations,
            )
            for s in report.sources
        ],
        limitations=report.limitations,
        author=report.author,
        check=report.check,
        judged_by=report.judged_by,
        conflicts=report.conflicts,
        conflict_search=report.conflict_search,
        texts=report.texts,
        created_at=report.created_at,
        expires_at=shared.expires_at,
    )
