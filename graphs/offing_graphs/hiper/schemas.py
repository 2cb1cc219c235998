"""Inputs and outputs of the agent, in addition to the schemas that all graphs share.

Field descriptions are part of the JSON schema in the prompt.
"""

from enum import StrEnum
from typing import Any

from pydantic import Field, field_validator, model_validator

from offing.sdk import ReportDraft
from offing_graphs.shared.schemas import (
    EvidenceInput,
    FrozenModel,
    MemoryRecord,
    RetrievedPassage,
    TaskContext,
    ToolCard,
)

ANSWER, GIVE_UP = "answer", "give_up"
"""Actions that end the work: with an answer, or without one."""
FINAL_ACTIONS = frozenset({ANSWER, GIVE_UP})


class Switch(StrEnum):
    KEEP = "KEEP"
    SWITCH = "SWITCH"


class Action(FrozenModel):
    """One tool call, or the end of the work."""

    tool: str = Field(
        min_length=1,
        description=f"Exact name of one of the tools; `{ANSWER}` to end with a report that answers the question; "
        f"`{GIVE_UP}` to end with one that says that nothing answers it.",
    )
    args: dict[str, Any] = Field(default={}, description="The tool's arguments, as its JSON schema asks.")
    report: ReportDraft | None = Field(default=None, description="The report, if this ends the work, else null.")

    @model_validator(mode="after")
    def _check_report(self) -> "Action":
        if (self.tool in FINAL_ACTIONS) != (self.report is not None):
            raise ValueError(f"give a report with {ANSWER} and {GIVE_UP}, and with nothing else")
        return self

    @property
    def is_final(self) -> bool:
        return self.tool in FINAL_ACTIONS


class Turn(FrozenModel):
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
    def _default_to_keep(cls, value: object) -> object:
        return value or Switch.KEEP

    @model_validator(mode="after")
    def _check_new_subgoal(self) -> "Turn":
        if self.switch is Switch.SWITCH and not self.subgoal.strip():
            raise ValueError("SWITCH needs a new subgoal")
        return self


class TurnRecord(MemoryRecord):
    """The decision, action and result of one turn. `sub_goal` equals `subgoal`."""

    output_seq: int
    """Seq of the agent's output."""
    switch: Switch
    boundary: bool
    """Whether the turn opened a segment, because it switched or was the first."""
    subgoal: str
    """The current subgoal from this turn on."""
    subgoal_nr: int
    """Number of the segment, from 1."""
    drifted: bool
    """Whether the turn kept its subgoal but stated another one."""


class PastTurn(FrozenModel):
    """The output of an earlier turn, for prompt formats that only append."""

    seq: int
    """Seq of the step, by which an engine finds the exact tokens."""
    turn: int
    """Number of the turn. 0 means outside of the loop."""
    output: Turn


class AgentInput(TaskContext, EvidenceInput):
    tools: tuple[ToolCard, ...]
    memory: tuple[TurnRecord, ...] = ()
    """Earlier turns, oldest first."""
    evidence: tuple[RetrievedPassage, ...] = ()
    past: tuple[PastTurn, ...] = ()
    subgoal: str = ""
    """The current subgoal. Empty means that there is none yet or that the agent left it empty."""
    turn: int
    remaining: int
    """Number of turns left, including this one.

    0 means that this is the forced answer after the last turn.
    """
    reason: str = ""
    """Reason why the work must end now, a `StopReason`. Empty means that it continues."""
