"""Inputs and outputs of the researcher.

Field descriptions are part of the JSON schema in the prompt. The output of each of the
three phases has its own schema, which says what the output must contain.
"""

from enum import StrEnum
from typing import Any, ClassVar

from pydantic import ConfigDict, Field, StrictBool, field_validator, model_validator

from offing.sdk import ReportDraft
from offing_graphs.shared.call_batches import MAX_CALLS, TOO_MANY_CALLS, Call
from offing_graphs.shared.schemas import (
    FrozenModel,
    RetrievedPassage,
    TaskContext,
    ToolCard,
    is_empty,
    is_false,
    is_none,
    is_zero,
)
from offing_graphs.shared.token_estimate import estimate_tokens

MAX_REPORT_TOKENS = 6_000
"""Maximum estimated tokens of a report, as the paper suggests."""


class TurnPhase(StrEnum):
    """Phase of a turn, which determines its prompt and output."""

    FIRST = "first"
    """There is no report yet; a tool must be called."""
    MIDDLE = "middle"
    """Either a tool is called or the question is answered."""
    FINAL = "final"
    """The question must be answered."""


class ToolObservation(FrozenModel):
    """The result of the last call. All of it is untrusted."""

    status: str
    """Status of the call, a `ToolStatus`."""
    message: str = ""
    """Why the call failed. Empty means that it succeeded."""
    content: dict[str, Any] = Field(default_factory=dict[str, Any])
    passages: tuple[RetrievedPassage, ...] = ()
    """Passages of the result, in its order."""
    value: str = ""
    """A result that is not a passage, on one line. Empty means that there is none."""


class Workspace(TaskContext):
    """The complete input of a turn.

    It holds nothing older than the last report, action and result, and how far the run has come.
    """

    phase: TurnPhase
    tools: tuple[ToolCard, ...] = ()
    report: str = ""
    """The report as rewritten in the previous turn. Empty means that there is none yet."""
    action: Call | None = None
    """The last call. `None` means that there was none."""
    result: ToolObservation | None = None
    """The result of the last call. `None` means that the call was not made."""
    more_actions: tuple[Call, ...] = Field(default=(), exclude_if=is_empty)
    """Calls that were made at the same time as the last call."""
    more_results: tuple[ToolObservation, ...] = Field(default=(), exclude_if=is_empty)
    """Their results, in their order. Empty means that they were not made."""
    cited: tuple[RetrievedPassage, ...] = ()
    """Passages whose ids the report names, as stored.

    No prompt shows them: the report must contain everything that the model needs to know.
    """
    deep: bool = Field(default=False, exclude_if=is_false)
    """Whether the run is deep."""
    turn: int = Field(default=0, exclude_if=is_zero)
    """Number of the turn, from 1. 0 means that it is unknown, so that the prompt does not say it."""
    max_turns: int = Field(default=0, exclude_if=is_zero)
    """The turn limit of the run."""
    answer_tokens: int | None = Field(default=None, exclude_if=is_none)
    """Maximum tokens of an answer of the model, without thinking. `None` means that it is unknown."""

    @property
    def actions(self) -> tuple[Call, ...]:
        """The last calls. Empty means that there was none."""
        return (self.action, *self.more_actions) if self.action else ()

    @property
    def results(self) -> tuple[ToolObservation, ...]:
        """The results of the last calls, in the order of the calls. Empty means that they were not made."""
        return (self.result, *self.more_results) if self.result else ()


class Round(FrozenModel):
    """The researcher's answer in a middle round."""

    think: str = Field(default="", description="Reasoning for this round only. It is not shown again.")
    report: str = Field(
        min_length=1,
        description="The report, rewritten whole: all that must be known in later rounds, with ids of passages such as "
        "[E3]. Nothing else is carried over. At most as many tokens as the instructions allow.",
    )
    action: Call | None = Field(default=None, description="A tool call, or null when there is an answer.")
    more_actions: tuple[Call, ...] = Field(
        default=(),
        exclude_if=is_empty,
        description=f"Further tool calls to be made at the same time as `action`, which do not need its result or each "
        f"other's. At most {MAX_CALLS - 1}; usually none.",
    )
    answer: ReportDraft | None = Field(default=None, description="The final answer, or null when a tool is called.")
    answered: StrictBool = Field(
        default=True, description="false: nothing that was found answers the question, and `answer` says so."
    )

    @property
    def actions(self) -> tuple[Call, ...]:
        """All tool calls of the round. Empty means that it answers."""
        return (self.action, *self.more_actions) if self.action else ()

    @field_validator("more_actions")
    @classmethod
    def _check_number_of_calls(cls, more: tuple[Call, ...]) -> tuple[Call, ...]:
        if len(more) >= MAX_CALLS:
            raise ValueError(TOO_MANY_CALLS.format(count=len(more) + 1))
        return more

    @field_validator("report")
    @classmethod
    def _check_report_length(cls, report: str) -> str:
        if not report.strip():
            raise ValueError("the report is empty; write what is known so far")
        count = estimate_tokens(report)
        if count > MAX_REPORT_TOKENS:
            raise ValueError(f"it has about {count:,} tokens; write a shorter one, of at most {MAX_REPORT_TOKENS:,}")
        return report

    @model_validator(mode="after")
    def _check_one_outcome(self) -> "Round":
        if (self.action is None) == (self.answer is None) or (self.more_actions and self.answer):
            raise ValueError("give either a tool call as `action`, or the final `answer`, and not both")
        return self


def _require_field(required: str, *excluded: str) -> Any:
    """Return a change of the JSON schema that requires one field and removes others."""

    def change(schema: dict[str, Any]) -> None:
        fields = schema["properties"]
        for name in excluded:
            fields.pop(name)
        field: dict[str, Any] = fields[required]
        named = next(option for option in field["anyOf"] if "$ref" in option)
        fields[required] = {"description": field["description"], **named}
        schema["required"] = [*schema["required"], required]
        if required == "action":
            fields.pop("answered")

    return change


class FirstRound(Round):
    """The answer in the first round: it cannot be the final one."""

    model_config: ClassVar[ConfigDict] = ConfigDict(json_schema_extra=_require_field("action", "answer"))

    @model_validator(mode="after")
    def _check_action(self) -> "FirstRound":
        if self.action is None:
            raise ValueError("nothing has been looked up yet: make a tool call as `action`")
        return self


class FinalRound(Round):
    """The answer in the final round: no tool is called any more."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        json_schema_extra=_require_field("answer", "action", "more_actions")
    )

    @model_validator(mode="after")
    def _check_answer(self) -> "FinalRound":
        if self.answer is None:
            raise ValueError("no tool can be called any more: give the final `answer`")
        return self


OUTPUTS_BY_PHASE: dict[TurnPhase, type[Round]] = {
    TurnPhase.FIRST: FirstRound,
    TurnPhase.MIDDLE: Round,
    TurnPhase.FINAL: FinalRound,
}
"""Output type of each phase."""


def build_output(phase: TurnPhase, **fields: Any) -> Round:
    """Build an output of the phase's type.

    Raises `ValidationError` if the phase does not allow the fields.
    """
    return OUTPUTS_BY_PHASE[phase](**fields)
