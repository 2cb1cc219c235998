"""Schemas that all graphs share: tools, passages, records, the task and its analysis.

Field descriptions are part of the JSON schema in the prompt.
"""

import re
from collections.abc import Sequence
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictBool, ValidationInfo, field_validator

from offing.sdk import ReportStyle


class FrozenModel(BaseModel):
    """An immutable model that rejects unknown fields."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def is_none(value: object) -> bool:
    """Return whether an optional field is not set.

    Such a field is not part of the recorded form, so that values without it stay the same.
    """
    return value is None


def is_false(value: bool) -> bool:
    return not value


def is_zero(value: int) -> bool:
    return value == 0


def is_blank(value: str) -> bool:
    return not value


def is_empty(value: tuple[Any, ...] | str) -> bool:
    return not value


class RoleInput(FrozenModel):
    """The input of a role whose prompt is fitted to the model's context window."""

    context_tokens: int | None = Field(default=None, exclude_if=is_none)
    """Tokens of the context window of the model that answers. `None` means that there is none or that it is unknown."""


class EvidenceInput(RoleInput):
    """The input of a role that sees retrieved passages."""

    left_out_passages: int = Field(default=0, exclude_if=is_zero)
    """Number of retrieved passages that are not part of the input: older ones, and those that a judge discarded."""


class PriorExchange(FrozenModel):
    """An earlier question of the thread with its short answer."""

    question: str
    answer: str


class ToolCard(FrozenModel):
    """A tool as the roles see it."""

    name: str
    description: str
    parameters: dict[str, Any]
    """JSON schema of the arguments."""
    third_party: bool = False
    """Whether a third party wrote the description and the schema."""


class RetrievedPassage(FrozenModel):
    """A retrieved passage. `start` and `end` are code points of text `text_id` of the source."""

    id: str
    source: str
    text_id: str
    start: int
    end: int
    title: str
    heading: str = ""
    name: str = ""
    """Path of the document within its folder."""
    text: str
    source_label: str = Field(default="", exclude=True)
    """Short id of the source in prompts, such as S2. Not recorded, because it follows from the order of retrieval."""
    published: str = Field(default="", exclude=True)
    """Date of the document as YYYY, YYYY-MM or YYYY-MM-DD. Empty means unknown. Not recorded, because the tool result
    has it."""

    @property
    def source_reference(self) -> str:
        """The id by which a prompt names the source: the short one, if there is one."""
        return self.source_label or self.source


class ChildOutcome(FrozenModel):
    """How a child run ended, beside its findings. The texts are untrusted, like its findings."""

    stop: str
    """Why it ended, a `StopReason`."""
    limits: str = ""
    """What it could not establish, according to its report."""
    open_points: tuple[str, ...] = ()
    """Parts of its question that its last verification did not find covered, with what is missing."""
    read_passages: int = 0
    """Number of passages that it read."""
    quoted: tuple[str, ...] = ()
    """Ids of the passages that its report quotes."""
    cited: tuple[str, ...] = ()
    """Ids of all passages that its report cites, the quoted ones first."""
    uncited: tuple[str, ...] = ()
    """Ids of passages that it read and passed on, but did not cite. Empty if it wrote no report."""


class MemoryRecord(FrozenModel):
    """The action and the result of one turn, a unit of the run's memory."""

    turn: int
    sub_goal: str
    tool: str
    args: dict[str, Any]
    status: str
    """Status of the call, a `ToolStatus`."""
    finding: str
    """A short extract of the result, or the reason why there is none. The text is untrusted."""
    value: str = ""
    """A result that is not a passage, such as a number. Empty means that there is none."""
    evidence: tuple[str, ...] = ()
    """Ids of the returned passages, best first."""
    fresh: int = 0
    """Number of returned passages that the run had not seen before."""
    verdict_before: str = ""
    """Analysis by the verifier at the end of the previous turn. Empty means that there was none."""
    child: ChildOutcome | None = Field(default=None, exclude_if=is_none)
    """How the child run ended whose result this is. `None` means that it is the result of a tool."""


class OutlinePart(FrozenModel):
    """A part of the question as a person has set it during the run."""

    text: str
    must_answer: bool = False
    """Whether the run is to continue while this part is open."""


class TaskContext(RoleInput):
    """The task as every role receives it."""

    question: str
    earlier: tuple[PriorExchange, ...] = ()
    user_messages: tuple[str, ...] = ()
    """Messages that the user sent during the run, oldest first."""
    plan: tuple[OutlinePart, ...] = Field(default=(), exclude_if=is_empty)
    """The parts of the question as a person has set them during the run, in order. Empty means that nobody has."""
    report_style: ReportStyle | None = Field(default=None, exclude_if=is_none)
    """What the user asks of the form of the report, for roles that write one. `None` means nothing."""
    clarification: str = Field(default="", exclude_if=is_empty)
    """What the person was asked before the research, with the response. Empty means that nothing was asked."""


class Analysis(FrozenModel):
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


_PART_ID = re.compile(r"[pP]?([1-9]\d?)")
PARTLY, NOT_IN_DOCUMENTS = "partly", "not_in_documents"
"""States of a sub-question that is not covered."""


def build_part_id(number: int) -> str:
    """Return the id of a sub-question in prompts, by its number from 1. It is the same in every turn."""
    return f"p{number}"


def resolve_part(name: str, sub_questions: Sequence[str]) -> str:
    """Return the sub-question that an answer names by its id or number. Other words stay unchanged."""
    match = _PART_ID.fullmatch(name.strip())
    number = int(match[1]) if match else 0
    return sub_questions[number - 1] if 0 < number <= len(sub_questions) else name


class Coverage(FrozenModel):
    """How far one sub-question is answered by what has been retrieved."""

    sub_question: str
    covered: StrictBool
    state: Literal["", "partly", "not_in_documents"] = Field(
        default="",
        exclude_if=is_blank,
        description="Of a part that is not covered. partly: passages answer some of it. not_in_documents: it was "
        "searched for in several ways, and the documents do not say it. Empty: neither.",
    )
    evidence: tuple[str, ...] = Field(default=(), description="Ids of the passages that answer it, such as E3.")
    missing: str = Field(default="", description="What is still missing. Empty: nothing.")

    @field_validator("state", mode="before")
    @classmethod
    def _drop_unknown_state(cls, state: object, info: ValidationInfo) -> object:
        """Drop the state of a covered part and a state in other words: it is only advice, and `covered` counts."""
        if not isinstance(state, str) or info.data.get("covered"):
            return ""
        word = "_".join(state.lower().replace("-", " ").replace("_", " ").split())
        return word if word in {PARTLY, NOT_IN_DOCUMENTS} else ""


class Plan(FrozenModel):
    """The planner's answer: one next step."""

    justification: str = Field(description="Why this is the best next step, given what is known.")
    context: str = Field(description="All that the tool call needs: search words, passage ids, positions, numbers.")
    sub_goal: str = Field(min_length=1, description="What this step is to find out, in one sentence.")
    tool: str = Field(description="Exact name of one of the tools.")
    args: dict[str, Any] | None = Field(
        default=None,
        exclude_if=is_none,
        description="The tool's complete arguments, as its JSON schema asks. null: not all of them are known.",
    )


class WriterInput(TaskContext, EvidenceInput):
    analysis: Analysis
    memory: tuple[MemoryRecord, ...] = ()
    evidence: tuple[RetrievedPassage, ...] = ()
    reason: str
    """Reason why collecting ended, a `StopReason`."""
    quoted: tuple[str, ...] = Field(default=(), exclude_if=is_empty)
    """Ids of passages that reports of child runs quote. They are shown first."""
    covering: tuple[str, ...] = Field(default=(), exclude_if=is_empty)
    """Ids of passages that answer parts of the question, by the last judgment.

    They are chosen before others, as those in `quoted` are.
    """
    open_parts: tuple[str, ...] = Field(default=(), exclude_if=is_empty)
    """Parts of the question that are not answered, by the last judgment, with what is missing."""
    uncited_passages: int = Field(default=0, exclude_if=is_zero)
    """Number of passages that child runs read and did not cite, so that they are not in `evidence`."""
