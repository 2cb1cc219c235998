"""What the researcher is given each round and what it answers, as types.

Field descriptions are part of the JSON schema that a model is shown. The three kinds of round differ in what their
answer must hold, and each says so in its own schema.
"""

from enum import StrEnum
from typing import Any, ClassVar

from pydantic import ConfigDict, Field, StrictBool, field_validator, model_validator

from offing.sdk import ReportDraft
from offing_graphs.parts.measuring import tokens_of
from offing_graphs.parts.shapes import Card, Case, Piece, Shape

REPORT_TOKENS = 6_000
"""A report's limit, by estimate. The paper's suggestion."""


class Stage(StrEnum):
    """Which form a round has."""

    FIRST = "first"
    """There is no report yet; a tool must be called."""
    MIDDLE = "middle"
    """Either a tool is called or the question is answered."""
    FINAL = "final"
    """The question must be answered."""


class Call(Shape):
    """A tool call."""

    tool: str = Field(min_length=1, description="Exact name of one of the tools.")
    args: dict[str, Any] = Field(description="Its arguments, as its JSON schema asks.")


class Result(Shape):
    """What came back from the last call. All of it is untrusted."""

    status: str
    """A ToolStatus."""
    message: str = ""
    """Why it is not ok. Empty: it is."""
    content: dict[str, Any] = Field(default_factory=dict[str, Any])
    pieces: tuple[Piece, ...] = ()
    """Passages that it brought back, in the order in which it did."""
    value: str = ""
    """A result that is no passage, on one line. Empty: there is none."""


class Workspace(Case):
    """All that a round is given: nothing that is older than the last report, action and result is in it."""

    stage: Stage
    tools: tuple[Card, ...] = ()
    report: str = ""
    """As rewritten in the round before. Empty: there is none yet."""
    action: Call | None = None
    """The last call. None: there was none."""
    result: Result | None = None
    """Of that call. None: it was not made."""
    cited: tuple[Piece, ...] = ()
    """Passages whose ids the report names, looked up as they are stored. No prompt shows them: what is to be known
    must stand in the report."""


class Round(Shape):
    """The researcher's answer in a middle round."""

    think: str = Field(default="", description="Reasoning for this round only. It is not shown again.")
    report: str = Field(
        min_length=1,
        description="The report, rewritten whole: all that must be known in later rounds, with ids of passages such as "
        f"[E3]. Nothing else is carried over. At most {REPORT_TOKENS:,} tokens.",
    )
    action: Call | None = Field(default=None, description="One tool call, or null when there is an answer.")
    answer: ReportDraft | None = Field(default=None, description="The final answer, or null when a tool is called.")
    answered: StrictBool = Field(
        default=True, description="false: nothing that was found answers the question, and `answer` says so."
    )

    @field_validator("report")
    @classmethod
    def _short_enough(cls, report: str) -> str:
        if not report.strip():
            raise ValueError("the report is empty; write what is known so far")
        count = tokens_of(report)
        if count > REPORT_TOKENS:
            raise ValueError(f"it has about {count:,} tokens; write a shorter one, of at most {REPORT_TOKENS:,}")
        return report

    @model_validator(mode="after")
    def _one_of_both(self) -> "Round":
        if (self.action is None) == (self.answer is None):
            raise ValueError("give either one tool call as `action`, or the final `answer`, and not both")
        return self


def _needs(given: str, other: str) -> Any:
    """Makes a schema ask for one field and not know the other."""

    def change(schema: dict[str, Any]) -> None:
        fields = schema["properties"]
        fields.pop(other)
        asked: dict[str, Any] = fields[given]
        named = next(option for option in asked["anyOf"] if "$ref" in option)
        fields[given] = {"description": asked["description"], **named}
        schema["required"] = [*schema["required"], given]
        if given == "action":
            fields.pop("answered")

    return change


class FirstRound(Round):
    """The answer in the first round: it cannot be the final one."""

    model_config: ClassVar[ConfigDict] = ConfigDict(json_schema_extra=_needs("action", "answer"))

    @model_validator(mode="after")
    def _acts(self) -> "FirstRound":
        if self.action is None:
            raise ValueError("nothing has been looked up yet: make one tool call as `action`")
        return self


class FinalRound(Round):
    """The answer in the final round: no tool is called any more."""

    model_config: ClassVar[ConfigDict] = ConfigDict(json_schema_extra=_needs("answer", "action"))

    @model_validator(mode="after")
    def _answers(self) -> "FinalRound":
        if self.answer is None:
            raise ValueError("no tool can be called any more: give the final `answer`")
        return self


ANSWERS: dict[Stage, type[Round]] = {Stage.FIRST: FirstRound, Stage.MIDDLE: Round, Stage.FINAL: FinalRound}
"""The type of each stage's answer."""


def round_of(stage: Stage, **fields: Any) -> Round:
    """An answer of the stage's own type. Raises `ValidationError` for what the stage does not allow."""
    return ANSWERS[stage](**fields)
