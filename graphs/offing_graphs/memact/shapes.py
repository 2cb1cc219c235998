"""What the agent is given and what it answers, as types, beside the shapes that all flows share.

Field descriptions are part of the JSON schema that a model is shown.
"""

from typing import Any, Literal

from pydantic import Field, StrictBool, model_validator
from pydantic.json_schema import SkipJsonSchema

from offing.sdk import ReportDraft
from offing_graphs.parts.shapes import Card, Case, Piece, Shape


class Act(Shape):
    """The agent's answer: exactly one tool call, answer or summary."""

    goal: str = Field(default="", description="What this is to find out or to achieve, in one sentence.")
    tool: str = Field(default="", description="Exact name of one of the tools. Empty: this is no tool call.")
    args: dict[str, Any] = Field(default={}, description="The tool's arguments, as its JSON schema asks.")
    answer: ReportDraft | None = Field(default=None, description="The report that ends the work. null: not yet.")
    found: StrictBool = Field(default=True, description="With an answer. false: nothing was found to answer with.")
    summary: str = Field(default="", description="The summary, when one is asked for. Empty: this is none.")
    written: SkipJsonSchema[str] = ""
    """The text that was read, where it is not the one that would be written. Empty: it is."""

    @model_validator(mode="after")
    def one_of_them(self) -> "Act":
        if sum(map(bool, (self.tool, self.answer, self.summary.strip()))) != 1:
            raise ValueError("give exactly one of tool, answer and summary")
        return self


class PruneArgs(Shape):
    delete_ids: tuple[str, ...] = Field(
        min_length=1, max_length=200, description="Ids of the records to remove, such as r1."
    )
    note: str = Field(default="", max_length=20_000, description="What to keep of them. Empty: nothing.")


class WriteArgs(Shape):
    note: str = Field(min_length=1, max_length=20_000, description="What to keep in mind.")


class Found(Shape):
    """What a tool gave, for roles that reason over values and not over text."""

    tool: str
    args: dict[str, Any]
    status: str
    """A ToolStatus."""
    content: dict[str, Any]
    """Without the text of passages."""
    value: str = ""
    """A result that is no passage, on one line. Empty: there is none."""
    evidence: tuple[str, ...] = ()
    """Ids of the passages that came back and are shown, best first."""


class Entry(Shape):
    """A record of the context: an action with its observation."""

    id: str
    turn: int
    seq: int
    """Of the action's step."""
    act: Act
    observation: str
    fresh: bool
    """It came after the present segment began, so that its action stands in the prompt as it was sampled."""
    ok: bool = True
    """The action did what it was meant to do."""
    found: Found | None = None
    """None: the action was no tool call."""


class AgentInput(Case):
    """The context, and what is asked next."""

    heard: tuple[int, ...] = ()
    """Of each wish, the turn before which it was first shown."""
    tools: tuple[Card, ...]
    records: tuple[Entry, ...] = ()
    summary: str = ""
    """What takes the place of everything before. Empty: nothing does."""
    stage: int = 1
    """1 and the number of summaries so far."""
    evidence: tuple[Piece, ...] = ()
    """Passages that live records show, and those that notes and the summary name. For roles without a model: models
    see what the records say."""
    ask: Literal["action", "summary", "answer"] = "action"
    reason: str = ""
    """Why an answer is asked for now, a StopReason. Empty: none is."""
    window: int
    """Estimated tokens that the context may measure."""
    edits: bool
    """Prune and write are among the tools."""
    turn: int
    remaining: int
    """Turns left, this one included."""
