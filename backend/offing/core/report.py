"""Reports: sentences that either have citations of stored spans or are marked as unsupported.

Quotes are verified in `core.citation`. Reports are rendered in `core.report_formats`.
"""

import re
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Literal
from uuid import UUID

from pydantic import BaseModel, Field, SerializerFunctionWrapHandler, model_serializer

from offing.core.follow_up import FollowUpOutcome
from offing.core.provenance import NO_PROVENANCE, ProvenanceLabel
from offing.core.tool import SourceSpan

_BAR = re.compile(r"(?<!\\)\|")


class Layout(StrEnum):
    """Place of a sentence in its section."""

    STATEMENT = "statement"
    """It stands alone. A report of quotes consists of statements."""
    PARAGRAPH = "paragraph"
    """It begins a paragraph of connected prose."""
    CONTINUED = "continued"
    """It continues the paragraph of the sentence before it."""
    ITEM = "item"
    """It is an item of a list. Items that follow one another are one list."""
    HEADER = "header"
    """It is the header row of a table, which states nothing. Its text has the cells between `|`."""
    ROW = "row"
    """It is a row of a table. Its text has the cells between `|`."""


class DraftCitation(BaseModel, frozen=True, extra="forbid"):
    """Citation in a draft: the id of a passage and the words that support the sentence."""

    evidence: str
    """Id of a passage that the generator was offered, such as E3."""
    quote: str = ""
    """Words copied from the passage. Empty means that the citation only names the passage and supports nothing."""


class DraftSentence(BaseModel, frozen=True, extra="forbid"):
    text: str
    citations: tuple[DraftCitation, ...] = ()
    layout: Layout = Field(
        default=Layout.STATEMENT,
        description="paragraph: begins a paragraph. continued: goes on in it. item: an item of a list. "
        "header, row: a row of a table, with its cells between |. statement: stands alone.",
    )

    @model_serializer(mode="wrap")
    def _drop_default_layout(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave out the layout of a statement, so that records of reports of quotes stay as they were."""
        fields: dict[str, Any] = handler(self)
        return fields if self.layout is not Layout.STATEMENT else _without(fields, "layout")


class DraftSection(BaseModel, frozen=True, extra="forbid"):
    heading: str
    sentences: tuple[DraftSentence, ...]


class ReportDraft(BaseModel, frozen=True, extra="forbid"):
    """Report draft of a generator. Nothing in it is verified yet."""

    title: str
    answer: str = ""
    """Short answer of one or two sentences, which counts as the report's first sentence. Empty means none."""
    sections: tuple[DraftSection, ...]
    limits: str = ""
    """What the writer could not establish, and how the report was made. Shown below the report."""
    answer_citations: tuple[DraftCitation, ...] = ()
    """Citations of the short answer with their quotes, besides the ids that its text names."""

    @model_serializer(mode="wrap")
    def _drop_empty_citations(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        fields: dict[str, Any] = handler(self)
        return fields if self.answer_citations else _without(fields, "answer_citations")


def _without(fields: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in fields.items() if key != name}


@dataclass(frozen=True, slots=True)
class Evidence:
    """A passage that the run has retrieved and offers to a generator."""

    id: str
    """E1, E2 and so on, in the order of retrieval."""
    span: SourceSpan
    text: str
    """Exact text of the span."""
    source_id: UUID
    title: str
    """Title of the source."""
    heading: str = ""
    """Heading above the span. Empty means none."""
    name: str = ""
    """Path of the source within its folder, or name of the file."""
    provenance: ProvenanceLabel = NO_PROVENANCE
    """Origin and trust level of the text."""
    source_label: str = ""
    """Short id of the source in the run: S1, S2 and so on, in the order of retrieval. Empty means that it has none."""
    published: str = ""
    """Date of the document as YYYY, YYYY-MM or YYYY-MM-DD. Empty means unknown."""


@dataclass(frozen=True, slots=True)
class SourceDetails:
    """What is known about a source besides its title."""

    name: str = ""
    """Path of the source within its folder, name of the file, or address of the web page. Empty means unknown."""
    is_web: bool = False
    author: str = ""
    published: str = ""
    """Date of the document as YYYY, YYYY-MM or YYYY-MM-DD. Empty means unknown."""
    retrieved_at: datetime | None = None
    """When the cited text was retrieved or added. `None` means unknown."""


@dataclass(frozen=True, slots=True)
class TextPosition:
    """Where in its source a citation is, as a person would look for it."""

    heading: str = ""
    """Headings above it, outermost first. Empty means none."""
    page: int = 0
    """Number of the page, from 1. 0 means that the source has no pages or that they are unknown."""
    first_line: int = 0
    """Number of the first line, from 1. 0 means that its lines are not those that a person sees."""
    last_line: int = 0
    fraction: float = 0.0
    """Part of the text that is before it, 0 to 1."""
    is_erased: bool = False
    """Whether the source was erased."""


@dataclass(frozen=True, slots=True)
class Citation:
    """Link from a sentence to a span whose quote was found in the stored text."""

    number: int
    """Number shown in the report, from 1. Each distinct span has one number."""
    span: SourceSpan
    quote: str
    source_id: UUID
    title: str
    position: TextPosition | None = None
    """`None` means that it was not looked up."""
    source: SourceDetails | None = None
    """`None` means that it was not looked up."""


class ClaimVerdict(StrEnum):
    """Whether the passages that a sentence cites support it."""

    SUPPORTED = "supported"
    """A quote was found, and every number, date and name of the sentence is in a quote or calculation."""
    PARTLY = "partly"
    """A quote was found, but some number, date or name of the sentence is in none."""
    CONTRADICTED = "contradicted"
    """Words of a passage, which were found there, say something else. Only a checker can judge that."""
    NOT_FOUND = "not_found"
    """No quote of the sentence was found, or a checker found that the passages do not say it."""
    CONCLUSION = "conclusion"
    """It cites nothing and says that it is a conclusion, and supported sentences state its numbers, dates and names.
    Nobody has checked that it follows from them."""


_SEVERITIES = {
    ClaimVerdict.SUPPORTED: 0,
    ClaimVerdict.CONCLUSION: 0,
    ClaimVerdict.PARTLY: 1,
    ClaimVerdict.NOT_FOUND: 2,
    ClaimVerdict.CONTRADICTED: 3,
}


@dataclass(frozen=True, slots=True)
class ClaimJudgment:
    """What a checker said of a sentence that cites something."""

    verdict: ClaimVerdict
    """`contradicted` only if the words that contradict were found. Otherwise such a judgment is `partly`."""
    reason: str = ""
    """Why, in a few words of the checker."""
    passage: int | None = None
    """Number of the citation whose passage was judged. `None` means that no citation in the report stands in it."""
    contradiction: int | None = None
    """Number of the citation with the words that contradict. `None` means that there are none."""


@dataclass(frozen=True, slots=True)
class Conclusion:
    """What a conclusion of a report follows from."""

    sentences: tuple[str, ...]
    """Ids of supported sentences, in the order of the report."""
    citations: tuple[int, ...]
    """Numbers of the citations of these sentences."""


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence of a report.

    `id` is s1, s2 and so on. It is stable within a report version, so that ratings can refer to it.
    """

    id: str
    text: str
    citations: tuple[int, ...] = ()
    """Numbers of verified citations."""
    rejected: tuple[str, ...] = ()
    """Reasons why citations of the draft were rejected."""
    passages: tuple[int, ...] = ()
    """Numbers of citations that name a passage and quote no words of it. They support nothing."""
    unsupported_values: tuple[str, ...] = ()
    """Numbers, dates and names of a cited sentence that are in no quote and in no calculation of the run."""
    layout: Layout = Layout.STATEMENT
    judgment: ClaimJudgment | None = None
    """`None` means that no checker judged the sentence."""
    is_edited: bool = False
    """Whether a person wrote the sentence, or changed its text or citations."""
    conclusion: Conclusion | None = None
    """What the sentence follows from. `None` means that it is no conclusion, or that nothing carries it."""

    @property
    def is_claim(self) -> bool:
        """Whether it cites something, also if all of its citations were rejected."""
        return bool(self.citations or self.passages or self.rejected)

    @property
    def is_supported(self) -> bool:
        """Whether citations support all of it. The header of a table needs none, because it states nothing."""
        if self.layout is Layout.HEADER and not self.citations:
            return True
        return self.verdict is ClaimVerdict.SUPPORTED

    @property
    def verdict(self) -> ClaimVerdict | None:
        """The worse of the verdicts of the rules and of the checker.

        `None` means that the sentence cites nothing and is no conclusion. A checker can therefore lower a verdict, and
        never raise it.
        """
        rules = self.rule_verdict
        if rules is None or self.judgment is None:
            return rules
        return max(rules, self.judgment.verdict, key=_SEVERITIES.__getitem__)

    @property
    def rule_verdict(self) -> ClaimVerdict | None:
        """The verdict of the lexical rules. `None` means that the sentence cites nothing and is no conclusion."""
        if self.citations:
            return ClaimVerdict.PARTLY if self.unsupported_values else ClaimVerdict.SUPPORTED
        if self.is_claim:
            return ClaimVerdict.NOT_FOUND
        return ClaimVerdict.CONCLUSION if self.conclusion else None


def split_cells(row: str) -> tuple[str, ...]:
    """Return the cells of a row of a table, whose text has them between `|`. An escaped bar belongs to its cell."""
    body = row.strip().removeprefix("|")
    body = body[:-1] if body.endswith("|") and not body.endswith("\\|") else body
    return tuple(cell.strip().replace("\\|", "|") for cell in _BAR.split(body))


@dataclass(frozen=True, slots=True)
class Section:
    heading: str
    sentences: tuple[Sentence, ...]


class ReportStatus(StrEnum):
    COMPLETE = "complete"
    PARTIAL = "partial"
    """The run ended before its verifier accepted the answer; `stop_reason` gives the reason."""


@dataclass(frozen=True, slots=True)
class ReportRevision:
    """What happened when a draft with problems went back to its writer."""

    problems_before: int
    """Sentences of the first draft with a rejected citation, without words quoted, or with an unsupported value."""
    problems_after: int
    """The same for the draft that became the report."""
    skipped: str = ""
    """Why the writer was not asked, or its answer not used. Empty means that its answer became the report."""


@dataclass(frozen=True, slots=True)
class ClaimCheck:
    """How a checker judged the sentences that cite something."""

    claims: int
    """Sentences that the checker was to judge."""
    judgments: int
    """Sentences that it judged."""
    checked_by: str = ""
    """Model of the checker. Empty means that no checker answered."""
    groups: int = 0
    """Calls that judged claims. Conflicts are looked for only among the passages of one call."""
    failure: str = ""
    """Why the checker did not judge all of them. Empty means that it did."""
    unverified: int = 0
    """Contradictions and conflicts whose words were not found in the passages, and which are therefore not listed."""


@dataclass(frozen=True, slots=True)
class Conflict:
    """Passages of two sources that disagree on the same matter."""

    matter: str
    """What they disagree about, in words of the checker. Empty means that a rule found it."""
    citations: tuple[int, int]
    """Numbers of the two citations whose words disagree."""

    @property
    def found_by(self) -> Literal["checker", "rules"]:
        """`checker` or `rules`."""
        return "checker" if self.matter else "rules"


@dataclass(frozen=True, slots=True)
class VersionOrigin:
    """How a version of a report came about that its run did not write: a person or a follow-up edited the report."""

    by: str
    """Name of the person, or engine and model of the follow-up."""
    base_version: int
    """Version that was edited or restored."""
    note: str = ""
    """What the person noted about it, or the text of the follow-up. Empty means nothing."""
    run_id: UUID | None = None
    """Run of the follow-up that made the version. `None` means that a person saved it."""


@dataclass(frozen=True, slots=True)
class Report:
    """A verified report. Every citation was found in the stored text when the report was written."""

    title: str
    status: ReportStatus
    stop_reason: str
    """Value of StopReason."""
    answer: Sentence | None
    sections: tuple[Section, ...]
    citations: tuple[Citation, ...]
    limits: str = ""
    written_by: str = ""
    """Engine and model of the generator."""
    revision: ReportRevision | None = None
    """`None` means that no draft went back to its writer."""
    follow_up: FollowUpOutcome | None = None
    """What it has to do with an earlier report of its thread. `None` means that it follows none."""
    check: ClaimCheck | None = None
    """`None` means that the run has no checker."""
    conflicts: tuple[Conflict, ...] = ()
    """Conflicts that a checker listed."""
    edit: VersionOrigin | None = None
    """Who made this version. `None` means that the run wrote it."""

    def sentences(self) -> tuple[Sentence, ...]:
        head = (self.answer,) if self.answer else ()
        return head + tuple(s for section in self.sections for s in section.sentences)

    def cited(self) -> tuple[Citation, ...]:
        """Return the citations of the sentences, without those that only a checker quotes."""
        if self.check is None:
            return self.citations
        numbers = {number for s in self.sentences() for number in (*s.citations, *s.passages)}
        return tuple(citation for citation in self.citations if citation.number in numbers)


class ReportScore(BaseModel):
    """Number of sentences and how many of them are supported by sources."""

    sentences: int = Field(ge=0)
    supported: int = Field(ge=0)
    citations: int = Field(ge=0)
