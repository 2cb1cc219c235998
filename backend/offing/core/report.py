"""What a report is: sentences, each with citations of stored spans, or marked as unsupported.

The only home of the report's shape. Quotes are checked in `core.citation`; rendering is in `core.rendering`.
"""

from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from pydantic import BaseModel, Field

from offing.core.provenance import NOBODY, Label
from offing.core.tool import Span


class DraftCitation(BaseModel, frozen=True, extra="forbid"):
    """What a generator claims: a piece of evidence by its id in the prompt, and the words that carry the claim."""

    evidence: str
    """Id of a piece of evidence offered to the generator, such as E3."""
    quote: str = ""
    """Words copied from it. Empty: the whole piece."""


class DraftSentence(BaseModel, frozen=True, extra="forbid"):
    text: str
    citations: tuple[DraftCitation, ...] = ()


class DraftSection(BaseModel, frozen=True, extra="forbid"):
    heading: str
    sentences: tuple[DraftSentence, ...]


class ReportDraft(BaseModel, frozen=True, extra="forbid"):
    """What a generator hands in, before anything in it was checked."""

    title: str
    answer: str = ""
    """The short answer in a sentence or two; it is treated as the report's first sentence. Empty: none."""
    sections: tuple[DraftSection, ...]
    limits: str = ""
    """What the writer could not establish, and how the report was made. Shown under the report."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """A piece of text that the run has retrieved and offers to a generator."""

    id: str
    """E1, E2 … in the order of retrieval."""
    span: Span
    text: str
    """The span's text, exactly."""
    source: UUID
    title: str
    """The source's title."""
    heading: str = ""
    """The heading that the span stands under. Empty: none."""
    name: str = ""
    """The source's path within its folder, or the file's name."""
    label: Label = NOBODY
    """Where it came from, and how far it is trusted."""


@dataclass(frozen=True, slots=True)
class Citation:
    """A claim's link to a span whose quote was found in the stored text."""

    number: int
    """As shown in the report, from 1; one number a distinct span."""
    span: Span
    quote: str
    source: UUID
    title: str


@dataclass(frozen=True, slots=True)
class Sentence:
    """One claim. `id` is stable within a report version, for ratings: s1, s2 …"""

    id: str
    text: str
    citations: tuple[int, ...] = ()
    """Numbers of verified citations."""
    rejected: tuple[str, ...] = ()
    """Why a citation that was handed in did not stand."""

    @property
    def supported(self) -> bool:
        return bool(self.citations)


@dataclass(frozen=True, slots=True)
class Section:
    heading: str
    sentences: tuple[Sentence, ...]


class ReportStatus(StrEnum):
    COMPLETE = "complete"
    PARTIAL = "partial"
    """The run ended before its verifier was content; `reason` says why."""


@dataclass(frozen=True, slots=True)
class Report:
    """A checked report. Every citation in it was found in the stored text when it was written."""

    title: str
    status: ReportStatus
    reason: str
    """A StopReason."""
    answer: Sentence | None
    sections: tuple[Section, ...]
    citations: tuple[Citation, ...]
    limits: str = ""
    written_by: str = ""
    """Engine and model of the generator."""

    def sentences(self) -> tuple[Sentence, ...]:
        head = (self.answer,) if self.answer else ()
        return head + tuple(s for section in self.sections for s in section.sentences)


class ReportScore(BaseModel):
    """How much of a report stands on sources."""

    sentences: int = Field(ge=0)
    supported: int = Field(ge=0)
    citations: int = Field(ge=0)
