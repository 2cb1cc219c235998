"""What every flow is given and passes on, as types: tools, passages, records, the task and its analysis.

Field descriptions are part of the JSON schema that a model is shown.
"""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field, StrictBool


class Shape(BaseModel):
    """Immutable, and exact about its fields."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Exchange(Shape):
    """An earlier question of the thread with its short answer."""

    question: str
    answer: str


class Card(Shape):
    """A tool as the roles see it."""

    name: str
    description: str
    parameters: dict[str, Any]
    """JSON schema of its arguments."""
    foreign: bool = False
    """True: a stranger wrote description and schema."""


class Piece(Shape):
    """A retrieved passage. `start` and `end` are code points in the text `artefact` of `source`."""

    id: str
    source: str
    artefact: str
    start: int
    end: int
    title: str
    heading: str = ""
    name: str = ""
    """The document's path within its folder."""
    text: str


class Record(Shape):
    """What one turn did and found: a unit of the run's memory."""

    turn: int
    sub_goal: str
    tool: str
    args: dict[str, Any]
    status: str
    """A ToolStatus."""
    finding: str
    """A short extract of what came back, or why nothing did. Untrusted text."""
    value: str = ""
    """A result that is no passage, such as a number. Empty: there is none."""
    evidence: tuple[str, ...] = ()
    """Ids of the passages that came back, best first."""
    fresh: int = 0
    """How many of them the run had not seen before."""
    verdict_before: str = ""
    """What the verifier said at the end of the turn before. Empty: there was none."""


class Case(Shape):
    """What every role is told about the task."""

    question: str
    earlier: tuple[Exchange, ...] = ()
    wishes: tuple[str, ...] = ()
    """What people wrote to the run while it worked, oldest first."""


class Analysis(Shape):
    """The analyst's answer."""

    summary: str = Field(description="What the question asks, in one or two sentences.")
    sub_questions: tuple[str, ...] = Field(
        min_length=1,
        max_length=8,
        description="Parts that can be answered one by one, each understandable alone; the question itself if simple.",
    )
    skills: tuple[str, ...] = Field(default=(), description="Abilities that answering takes.")
    relevant_tools: tuple[str, ...] = Field(default=(), description="Names of the tools that are likely to help.")
    considerations: str = Field(default="", description="Pitfalls, ambiguities, words that documents may use instead.")


class Coverage(Shape):
    """How far one sub-question is answered by what has been retrieved."""

    sub_question: str
    covered: StrictBool
    evidence: tuple[str, ...] = Field(default=(), description="Ids of the passages that answer it, such as E3.")
    missing: str = Field(default="", description="What is still missing. Empty: nothing.")


class Plan(Shape):
    """The planner's answer: one next step."""

    justification: str = Field(description="Why this is the best next step, given what is known.")
    context: str = Field(description="All that the tool call needs: search words, passage ids, positions, numbers.")
    sub_goal: str = Field(min_length=1, description="What this step is to find out, in one sentence.")
    tool: str = Field(description="Exact name of one of the tools.")


class WriterInput(Case):
    analysis: Analysis
    memory: tuple[Record, ...] = ()
    evidence: tuple[Piece, ...] = ()
    reason: str
    """Why collecting ended, a StopReason."""
