"""API schemas of the versions of a report that people save, and their serializers."""

from datetime import datetime
from uuid import UUID

from pydantic import Field

from offing.api.schemas.base import ApiModel, Page
from offing.core.report import Evidence, Layout
from offing.core.report_edit import (
    CitationChoice,
    EditedSection,
    EditedSentence,
    NewCitation,
    ReportEdit,
)
from offing.core.report_editor import ReportEditor, find_editor
from offing.core.tool import SourceSpan
from offing.storage.reports import ReportVersionRow
from offing.telemetry.redaction import remove_secrets

MAX_CODE_POINTS = 2**31 - 1
MAX_SENTENCE_CHARS = 8_000
MAX_SENTENCES_PER_SECTION = 2_000
MAX_SECTIONS = 200
MAX_CITATIONS_PER_SENTENCE = 50


class SpanModel(ApiModel):
    """A span of a stored text, in code points."""

    text_id: UUID
    start: int = Field(ge=0, le=MAX_CODE_POINTS, description="First code point.")
    end: int = Field(ge=0, le=MAX_CODE_POINTS, description="Code point after the last one.")


class NewCitationIn(ApiModel):
    """Words of a passage that the run has read, to cite. Words that are not in the passage are rejected."""

    passage: SpanModel = Field(description="A passage of `GET /runs/{run_id}/evidence`.")
    quote: str = Field(min_length=1, max_length=20_000, description="Words copied from the passage.")


class SentenceIn(ApiModel):
    """A sentence of an edited report."""

    id: str | None = Field(
        default=None, max_length=40, description="Id of the sentence in the edited version. null: it is new."
    )
    text: str = Field(min_length=1, max_length=MAX_SENTENCE_CHARS)
    citations: list[int | NewCitationIn] = Field(
        default=[],
        max_length=MAX_CITATIONS_PER_SENTENCE,
        description="Numbers of citations and of named passages of the edited version, or new citations.",
    )
    layout: Layout = Layout.STATEMENT


class SectionIn(ApiModel):
    heading: str = Field(default="", max_length=500)
    sentences: list[SentenceIn] = Field(max_length=MAX_SENTENCES_PER_SECTION)


class ReportEditIn(ApiModel):
    """A whole report as a person left it. It becomes the next version.

    A sentence with the text and the citations that it had keeps its verdicts. Any other sentence is checked by rules,
    without a model, and is marked as edited by a person.
    """

    base_version: int = Field(
        ge=1, le=2**31 - 1, description="The edited version, to which ids and numbers of citations refer."
    )
    latest_version: int | None = Field(
        default=None,
        ge=1,
        le=2**31 - 1,
        description="The newest version that you have seen. If there is a newer one, the response is 409. "
        "null: the edited version.",
    )
    note: str = Field(default="", max_length=500, description="What was changed and why, for readers of the versions.")
    title: str = Field(min_length=1, max_length=1_000)
    answer: SentenceIn | None = Field(default=None, description="The short answer. null: none.")
    sections: list[SectionIn] = Field(max_length=MAX_SECTIONS)
    limitations: str = Field(default="", max_length=20_000)


class RestoreIn(ApiModel):
    """Restore an earlier version of a report as the next version."""

    latest_version: int = Field(
        ge=1, le=2**31 - 1, description="The newest version that you have seen. If there is a newer one: 409."
    )
    note: str = Field(default="", max_length=500)


class ReportVersionOut(ApiModel):
    version: int
    created_at: datetime
    title: str
    author: str = Field(description="Engine and model of the run's writer. Empty: unknown.")
    edited_by: str | None = Field(
        description="The person who saved the version, or engine and model of the follow-up that made it. "
        "null: the run wrote it."
    )
    editor: ReportEditor | None = Field(description="What kind of editor that is. null: the run wrote it.")
    follow_up_run_id: UUID | None = Field(description="The follow-up that made the version. null: none did.")
    note: str = Field(description="What the person noted, or the text of the follow-up. Empty: nothing.")
    base_version: int | None = Field(description="The version that was edited or restored. null: the run wrote it.")


class ReportVersionPage(Page):
    items: list[ReportVersionOut]


class EvidencePassageOut(ApiModel):
    """A passage that the run has read, which a report may cite."""

    id: str = Field(description="Id of the passage in the run, such as E3.")
    source: str = Field(description="Short id of its source in the run, such as S1. It is not that of a report.")
    source_id: UUID
    title: str
    heading: str
    name: str = Field(description="Path in its folder, name of the file, or address of the web page. Empty: unknown.")
    passage: SpanModel
    text: str


class EvidencePassagePage(Page):
    items: list[EvidencePassageOut]


def edit_from_request(body: ReportEditIn) -> ReportEdit:
    """Return the edit of a request, without the secrets of this installation."""
    edit = ReportEditIn.model_validate(remove_secrets(body.model_dump(mode="json")))
    return ReportEdit(
        edit.title,
        _sentence_from_request(edit.answer) if edit.answer else None,
        tuple(EditedSection(s.heading, tuple(map(_sentence_from_request, s.sentences))) for s in edit.sections),
        edit.limitations,
    )


def _sentence_from_request(sentence: SentenceIn) -> EditedSentence:
    choices = tuple(map(_choice_from_request, sentence.citations))
    return EditedSentence(sentence.text, choices, sentence.layout, sentence.id or "")


def _choice_from_request(citation: int | NewCitationIn) -> CitationChoice:
    if isinstance(citation, int):
        return citation
    span = citation.passage
    return NewCitation(SourceSpan(span.text_id, span.start, span.end), citation.quote)


def serialize_version(row: ReportVersionRow) -> ReportVersionOut:
    return ReportVersionOut(
        version=row.version,
        created_at=row.created_at,
        title=row.title,
        author=row.written_by,
        edited_by=row.edited_by,
        editor=find_editor(row.edited_by, row.edited_in),
        follow_up_run_id=row.edited_in,
        note=row.note,
        base_version=row.base_version,
    )


def serialize_passage(evidence: Evidence) -> EvidencePassageOut:
    span = evidence.span
    return EvidencePassageOut(
        id=evidence.id,
        source=evidence.source_label,
        source_id=evidence.source_id,
        title=evidence.title,
        heading=evidence.heading,
        name=evidence.name,
        passage=SpanModel(text_id=span.text_id, start=span.start, end=span.end),
        text=evidence.text,
    )
