"""What the agent is given and what it answers, as types, beside the shapes that all flows share.

Field descriptions are part of the JSON schema that a model is shown.
"""

from enum import StrEnum
from typing import Any

from pydantic import Field, field_validator, model_validator

from offing.sdk import ReportDraft
from offing_graphs.parts.shapes import Card, Case, Piece, Record, Shape

ANSWER, GIVE_UP = "answer", "give_up"
"""Actions that end the work: with what answers the question, or where nothing does."""
ENDS = frozenset({ANSWER, GIVE_UP})


class Switch(StrEnum):
    KEEP = "KEEP"
    SWITCH = "SWITCH"


class Action(Shape):
    """One tool call, or the end of the work."""

    tool: str = Field(
        min_length=1,
        description=f"Exact name of one of the tools; `{ANSWER}` to end with a report that answers the question; "
        f"`{GIVE_UP}` to end with one that says that nothing answers it.",
    )
    args: dict[str, Any] = Field(default={}, description="The tool's arguments, as its JSON schema asks.")
    report: ReportDraft | None = Field(default=None, description="The report, if this ends the work, else null.")

    @model_validator(mode="after")
    def _report_at_the_end(self) -> "Action":
        if (self.tool in ENDS) != (self.report is not None):
            raise ValueError(f"give a report with {ANSWER} and {GIVE_UP}, and with nothing else")
        return self

    @property
    def ends(self) -> bool:
        return self.tool in ENDS


class Turn(Shape):
    """The agent's answer."""

    switch: Switch = Field(default=Switch.KEEP, description="KEEP the current subgoal, or SWITCH to a new one.")
    subgoal: str = Field(
        default="",
        max_length=1000,
        description="KEEP: the current subgoal, copied letter by letter. SWITCH: a new one, in a few words.",
    )
    action: Action

    @field_validator("switch", mode="before")
    @classmethod
    def _empty_keeps(cls, value: object) -> object:
        return value or Switch.KEEP

    @model_validator(mode="after")
    def _new_subgoal(self) -> "Turn":
        if self.switch is Switch.SWITCH and not self.subgoal.strip():
            raise ValueError("SWITCH needs a new subgoal")
        return self


class TurnRecord(Record):
    """What one turn decided, did and found. `sub_goal` is the subgoal in force, also where `subgoal` is read."""

    said: int
    """Seq of the agent's answer."""
    switch: Switch
    boundary: bool
    """The turn opened a segment: it switched, or was the first."""
    subgoal: str
    """In force from this turn on."""
    subgoal_nr: int
    """Number of the segment, from 1."""
    drifted: bool
    """It kept its subgoal, and wrote another one."""


class PastTurn(Shape):
    """What the agent said in an earlier turn, for forms that only append."""

    seq: int
    """Of its step, so that an engine finds the very tokens."""
    turn: int
    """0: outside the loop."""
    output: Turn


class AgentInput(Case):
    tools: tuple[Card, ...]
    memory: tuple[TurnRecord, ...] = ()
    """Earlier turns, oldest first."""
    evidence: tuple[Piece, ...] = ()
    past: tuple[PastTurn, ...] = ()
    subgoal: str = ""
    """In force. Empty: none is yet, or it was left empty."""
    turn: int
    remaining: int
    """Turns left, this one included. 0: this is the forced answer after the last."""
    reason: str = ""
    """Why the work must end now, a StopReason. Empty: it goes on."""
