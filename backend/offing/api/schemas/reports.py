"""Schemas of a report: its sections, sentences, citations and changes."""

from datetime import datetime
from typing import Literal
from uuid import UUID

from pydantic import Field

from offing.api.coded_texts import TEXTS, PositionTextOut, RejectionTextOut, RunTextOut
from offing.api.schemas.base import ApiModel
from offing.core.follow_up import FollowUpKind, KindChooser
from offing.core.report_changes import ChangeKind
from offing.core.report_editor import ReportEditor
from offing.core.run import StopReason


class CitationOut(ApiModel):
    number: int
    text_id: UUID | None = Field(description="null: the source has been erased.")
    source_id: UUID
    title: str
    start: int = Field(description="First code point of the span in the stored text.")
    end: int = Field(description="Code point after the span.")
    quote: str
    verified: bool = Field(description="Whether the quote is in the stored text. This is checked for each response.")
    source: str = Field(description="Short id of the source in the report's list of sources, such as S1.")
    position: str = Field(description="Where in the source it is, in words: section, lines. Empty: unknown.")
    position_texts: list[PositionTextOut] = Field(description="What the parts of the position say. Empty: unknown.")


class CitedSourceOut(ApiModel):
    """A source that a report cites."""

    id: str = Field(description="S1, S2 and so on, in the order in which the report first cites the sources.")
    source_id: UUID
    title: str
    name: str = Field(description="Path in its folder, name of the file, or address of the web page. Empty: unknown.")
    site: str = Field(description="Host of a web page. Empty: the source is no web page.")
    author: str = Field(description="Empty: unknown.")
    published: str = Field(description="Date of the document: YYYY, YYYY-MM or YYYY-MM-DD. Empty: unknown.")
    retrieved_at: datetime | None = Field(description="When the cited text was retrieved or added. null: unknown.")
    description: str = Field(description="What is known about the source besides its title, in words.")
    citations: list[int] = Field(description="Numbers of its citations.")


JudgedVerdict = Literal["supported", "partly", "contradicted", "not_found"]


Verdict = Literal[JudgedVerdict, "conclusion"]


class JudgmentOut(ApiModel):
    """What the checker said of a sentence. A verdict `contradicted` has words that were found in the passage."""

    verdict: JudgedVerdict
    reason: str
    passage: int | None = Field(description="Number of the citation whose passage was judged.")
    contradiction: int | None = Field(description="Number of the citation with the words that contradict.")


class SentenceOut(ApiModel):
    id: str
    text: str
    citations: list[int]
    supported: bool
    rejected: list[str]
    rejected_texts: list[RejectionTextOut | None] = Field(
        description="What each text of `rejected` says, in their order. null: no code stands for it."
    )
    passages: list[int] = Field(
        description="Numbers of citations that name a passage and quote no words of it. They support nothing."
    )
    unsupported_values: list[str] = Field(
        description="Numbers, dates and names of the sentence that are in none of its quotes and in no calculation."
    )
    verdict: Verdict | None = Field(
        description="Whether the cited passages support the sentence: the worse of the verdicts of rules and checker. "
        "`conclusion`: it cites nothing, says that it is a conclusion, and follows from supported sentences. "
        "Null: it cites nothing and is no conclusion."
    )
    rule_verdict: Verdict | None = Field(
        description="The verdict of the rules. Null: the sentence cites nothing and is no conclusion."
    )
    judgment: JudgmentOut | None = Field(description="The verdict of the checker. Null: it judged none.")
    follows_from: list[str] = Field(
        description="Ids of the supported sentences that a conclusion follows from. Empty: it is no conclusion."
    )
    reasons: list[str] = Field(
        description="Why the sentence is marked, or what a conclusion follows from, in words. Empty: it is supported."
    )
    edited: bool = Field(description="Whether a person wrote the sentence, or changed its text or citations.")
    layout: Literal["statement", "paragraph", "continued", "item", "header", "row"] = Field(
        description="Place in the section: alone, in a paragraph, a list or a table. A row has its cells between |.",
    )


class RevisionOut(ApiModel):
    problems_before: int = Field(description="Sentences of the first draft that would be marked.")
    problems_after: int = Field(description="The same for the draft that became the report.")
    skipped: str = Field(description="Why the corrections were not made or not used. Empty: they were used.")


class SentenceChangeOut(ApiModel):
    kind: ChangeKind
    text: str = Field(description="Text in the new version. Of a removed sentence: in the version before.")
    before: str = Field(
        description="Text of a changed sentence in the version before. If it equals text, only its sources differ."
    )


class SectionChangeOut(ApiModel):
    kind: ChangeKind
    heading: str = Field(description="Heading in the new version. Of a removed section: in the version before.")
    before: str = Field(description="Heading in the version before, if it was different. Empty: it is the same.")
    sentences: list[SentenceChangeOut] = Field(description="Its sentences that are not the same.")


class ReportChangesOut(ApiModel):
    """Differences from the version before, found by comparison."""

    answer: list[SentenceChangeOut] = Field(description="Change of the short answer. Empty: it is the same.")
    sections: list[SectionChangeOut] = Field(description="Sections that are not the same.")
    kept_sections: int = Field(description="Number of sections that are the same.")
    title_before: str = Field(description="Title of the version before, if it was different. Empty: it is the same.")


class FollowUpOutcomeOut(ApiModel):
    """What a report has to do with the earlier report that it follows."""

    kind: FollowUpKind = Field(description="The kind that was chosen, never auto.")
    chosen_by: KindChooser
    run_id: UUID = Field(description="The run of the earlier report.")
    version: int = Field(description="Version of the earlier report.")
    changes: ReportChangesOut | None = Field(description="null: the report answers a question and replaces nothing.")
    deleted_sources: list[str] = Field(
        description="Titles of documents that the earlier report cites and that were deleted since."
    )
    unchanged_because: str = Field(
        description="Why the earlier report could not be changed as requested. Empty: it could."
    )


class VersionOfOut(ApiModel):
    """The version of an earlier report that a follow-up made."""

    run_id: UUID = Field(description="The run of the earlier report.")
    version: int
    latest_version: int = Field(description="The newest version of that report.")


class ClaimCheckOut(ApiModel):
    """How the checker judged the sentences that cite something."""

    claims: int = Field(description="Sentences that it was to judge.")
    judgments: int = Field(description="Sentences that it judged.")
    checked_by: str = Field(description="Model of the checker. Empty: it gave no answer.")
    groups: int = Field(description="Calls. Conflicts are looked for among the passages of one call.")
    failure: str = Field(description="Why it did not judge all of them. Empty: it did.")
    unverified: int = Field(description="Contradictions and conflicts in words that no passage contains; not listed.")


class ConflictOut(ApiModel):
    """Passages of two sources that disagree on the same matter."""

    matter: str = Field(description="What they disagree about, in words of the checker. Empty: rules found it.")
    found_by: Literal["checker", "rules"]
    citations: list[int] = Field(description="Numbers of the two citations whose quotes disagree.")


class SectionOut(ApiModel):
    heading: str
    sentences: list[SentenceOut]


class ReportOut(ApiModel):
    run_id: UUID
    version: int
    status: Literal["complete", "partial"]
    reason: StopReason
    title: str
    answer: SentenceOut | None
    sections: list[SectionOut]
    citations: list[CitationOut]
    sources: list[CitedSourceOut] = Field(description="The cited sources, each once.")
    limitations: str
    author: str
    revision: RevisionOut | None = Field(
        description="The draft went back to its writer because of sentences without support. Null: it did not."
    )
    follow_up: FollowUpOutcomeOut | None = Field(
        default=None, description="The earlier report that this one follows, with the changes. null: it follows none."
    )
    check: ClaimCheckOut | None = Field(description="The work of the checker. Null: the run has none.")
    judged_by: str = Field(description="Who gave the verdicts, in words. Empty: no sentence cites anything.")
    conflicts: list[ConflictOut] = Field(description="Where quotes of different sources disagree.")
    conflict_search: str = Field(
        description="Who looked for conflicts between sources, in words. Empty: no sentence cites anything."
    )
    texts: dict[str, RunTextOut] = Field(default={}, description=f"{TEXTS} Fields: author, judged_by, conflict_search.")
    edited_by: str | None = Field(
        description="The person who saved this version, or engine and model of the follow-up that made it. "
        "null: the run wrote it."
    )
    editor: ReportEditor | None = Field(description="What kind of editor that is. null: the run wrote it.")
    follow_up_run_id: UUID | None = Field(description="The follow-up that made this version. null: none did.")
    note: str = Field(description="What the person noted, or the text of the follow-up. Empty: nothing.")
    base_version: int | None = Field(description="The version that was edited or restored. null: the run wrote it.")
    latest_version: int = Field(description="The newest version of the report.")
    version_of: VersionOfOut | None = Field(
        description="The version of an earlier report that this follow-up made with its edit. null: it made none."
    )
    created_at: datetime
