"""Inputs and outputs of the agent, in addition to the schemas that all graphs share.

Field descriptions are part of the JSON schema in the prompt.
"""

from typing import Any, Literal

from pydantic import Field, StrictBool, model_validator
from pydantic.json_schema import SkipJsonSchema

from offing.sdk import ReportDraft
from offing_graphs.shared.call_batches import MAX_CALLS, TOO_MANY_CALLS, Call
from offing_graphs.shared.schemas import FrozenModel, RetrievedPassage, TaskContext, ToolCard, is_empty, is_zero

PRUNE, WRITE = "prune", "write"
EDIT_ACTIONS = (PRUNE, WRITE)
"""Names of the memory actions, called like tools."""


class Act(FrozenModel):
    """The agent's answer: tool calls that are made at once, an answer or a summary."""

    goal: str = Field(default="", description="What this is to find out or to achieve, in one sentence.")
    tool: str = Field(default="", description="Exact name of one of the tools. Empty: this is no tool call.")
    args: dict[str, Any] = Field(default={}, description="The tool's arguments, as its JSON schema asks.")
    more_calls: tuple[Call, ...] = Field(
        default=(),
        exclude_if=is_empty,
        description=f"Further tool calls to be made at the same time, which do not need each other's results. At most "
        f"{MAX_CALLS - 1}; usually none.",
    )
    answer: ReportDraft | None = Field(default=None, description="The report that ends the work. null: not yet.")
    found: StrictBool = Field(default=True, description="With an answer. false: nothing was found to answer with.")
    summary: str = Field(default="", description="The summary, when one is asked for. Empty: this is none.")
    written: SkipJsonSchema[str] = ""
    """The parsed text, if rendering the action would give another text.

    Empty means that it would not.
    """

    @model_validator(mode="after")
    def check_one_outcome(self) -> "Act":
        if sum(map(bool, (self.tool, self.answer, self.summary.strip()))) != 1:
            raise ValueError("give exactly one of tool, answer and summary")
        return self

    @model_validator(mode="after")
    def check_calls(self) -> "Act":
        count = 1 + len(self.more_calls)
        if count > MAX_CALLS:
            raise ValueError(TOO_MANY_CALLS.format(count=count))
        if self.more_calls and not self.tool:
            raise ValueError("name the first tool call as `tool` and `args`")
        if self.more_calls and (edits := [call.tool for call in self.calls if call.tool in EDIT_ACTIONS]):
            raise ValueError(f"{edits[0]} stands alone: make it in a turn of its own, without other calls")
        return self

    @property
    def calls(self) -> tuple[Call, ...]:
        """All tool calls of the action. Empty means that it is none."""
        return (Call(tool=self.tool, args=self.args), *self.more_calls) if self.tool else ()


class PruneArgs(FrozenModel):
    delete_ids: tuple[str, ...] = Field(
        min_length=1, max_length=200, description="Ids of the records to remove, such as r1."
    )
    note: str = Field(default="", max_length=20_000, description="What to keep of them. Empty: nothing.")


class WriteArgs(FrozenModel):
    note: str = Field(min_length=1, max_length=20_000, description="What to keep in mind.")


class ToolFinding(FrozenModel):
    """The result of a tool call, for roles that reason over values and not over text."""

    tool: str
    args: dict[str, Any]
    status: str
    """Status of the call, a `ToolStatus`."""
    content: dict[str, Any]
    """Content of the result without the text of passages."""
    value: str = ""
    """A result that is not a passage, on one line. Empty means that there is none."""
    evidence: tuple[str, ...] = ()
    """Ids of the shown passages of the result, best first."""


class ContextRecord(FrozenModel):
    """A record of the context: an action with its observation."""

    id: str
    turn: int
    seq: int
    """Seq of the step with the action."""
    action: Act
    observation: str
    in_segment: bool
    """Whether the record is in the current segment, so that the prompt repeats its action as sampled."""
    ok: bool = True
    """Whether the action succeeded."""
    finding: ToolFinding | None = None
    """The result of a tool call. `None` means that the action was not a tool call."""
    more_findings: tuple[ToolFinding, ...] = Field(default=(), exclude_if=is_empty)
    """The results of calls that were made at the same time."""
    omitted_passages: int = Field(default=0, exclude_if=is_zero)
    """Number of passages of the results that the observation says it does not show."""

    @property
    def findings(self) -> tuple[ToolFinding, ...]:
        """The results of all calls, in their order. Empty means that the action was not a tool call."""
        return (self.finding, *self.more_findings) if self.finding else ()


class AgentInput(TaskContext):
    """The context and the requested kind of output."""

    message_turns: tuple[int, ...] = ()
    """For each user message, the turn before which it was first shown."""
    tools: tuple[ToolCard, ...]
    records: tuple[ContextRecord, ...] = ()
    summary: str = ""
    """The summary that replaces everything before it. Empty means that there is none."""
    stage: int = 1
    """One plus the number of summaries so far."""
    evidence: tuple[RetrievedPassage, ...] = ()
    """Passages that the records show and those that notes and the summary name.

    They serve roles without a model; models see the text of the records.
    """
    request: Literal["action", "summary", "answer"] = "action"
    reason: str = ""
    """Reason why an answer is requested now, a `StopReason`. Empty means that none is requested."""
    omitted_records: tuple[str, ...] = Field(default=(), exclude_if=is_empty)
    """The latest records that are taken out of the context for the last answer, because they do not fit."""
    max_context_tokens: int
    """Maximum estimated tokens of the context."""
    allows_edits: bool
    """Whether `prune` and `write` are among the tools."""
    shows_room: bool = Field(default=True, exclude_if=bool)
    """Whether each record says how much of the context is used and how many turns are left, if edits are allowed."""
    turn: int
    remaining: int
    """Number of turns left, including this one."""

    @property
    def max_turns(self) -> int:
        """The turn limit of the run."""
        return self.turn + self.remaining - 1
