"""Inputs and outputs of the calls that write a report section by section.

Field descriptions are part of the JSON schema in the prompt.
"""

from pydantic import Field

from offing.sdk import DraftCitation, DraftSection
from offing_graphs.shared.schemas import FrozenModel, RetrievedPassage, TaskContext, is_empty

MAX_SECTIONS = 12
"""Maximum number of sections. All of them are written side by side."""


class OutlineSection(FrozenModel):
    """A section before it is written."""

    heading: str = Field(min_length=1, max_length=300, description="Its heading, in the language of the report.")
    answers: str = Field(default="", description="What it answers, in one sentence.")
    evidence: tuple[str, ...] = Field(default=(), description="Ids of all passages that it needs, such as E3.")


class Outline(FrozenModel):
    """The sections of a report, in their order."""

    title: str = Field(default="", description="Title of the report.")
    sections: tuple[OutlineSection, ...] = Field(min_length=1, max_length=MAX_SECTIONS)


class SectionInput(TaskContext):
    """The input of the call that writes one section."""

    title: str
    """Title of the report."""
    headings: tuple[str, ...]
    """Headings of all sections, in their order."""
    number: int
    """Number of this section, from 1."""
    answers: str = ""
    """What it answers."""
    max_words: int
    passages: tuple[RetrievedPassage, ...] = ()
    values: tuple[str, ...] = Field(default=(), exclude_if=is_empty)
    """Results of the run that are not passages, such as numbers, one per line."""

    @property
    def heading(self) -> str:
        return self.headings[self.number - 1]


class WrittenSection(FrozenModel):
    """A section as its writer returns it."""

    parts: tuple[DraftSection, ...] = Field(
        min_length=1, description="The section under its heading. More than one only where it needs sub-headings."
    )
    limits: str = Field(default="", description="What could not be established for this section. Empty: nothing.")


class OpeningInput(TaskContext):
    """The input of the call that writes what stands above the finished sections."""

    title: str
    """Title of the outline."""
    sections: tuple[DraftSection, ...]
    limits: tuple[str, ...] = ()
    """What the writers of the sections could not establish."""
    reason: str
    """Reason why collecting ended, a `StopReason`."""


class Opening(FrozenModel):
    """Title, short answer and limits of a report whose sections are finished."""

    title: str = Field(default="", description="Title of the report.")
    answer: str = Field(min_length=1, description="The short answer, with ids of passages such as [E3].")
    answer_citations: tuple[DraftCitation, ...] = Field(
        default=(), description="Passages by id, each with words copied exactly from it. Empty: the ids suffice."
    )
    limits: str = Field(default="", description="What could not be established. Empty: nothing.")
