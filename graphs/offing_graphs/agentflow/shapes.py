"""What AgentFlow's roles are given and what they answer, as types, beside the shapes that all flows share.

Field descriptions are part of the JSON schema that a model is shown.
"""

from typing import Any

from pydantic import Field, StrictBool

from offing_graphs.parts.shapes import Analysis, Card, Case, Coverage, Piece, Plan, Record, Shape


class Command(Shape):
    """The executor's answer: one tool call."""

    tool: str = Field(description="Exact name of the planned tool.")
    args: dict[str, Any] = Field(description="Its arguments, as its JSON schema asks.")


class Verdict(Shape):
    """The verifier's answer."""

    analysis: str = Field(description="What has been established, and what is missing, in a few sentences.")
    coverage: tuple[Coverage, ...] = Field(default=(), description="One entry for each sub-question.")
    stop: StrictBool = Field(
        description="true: what was retrieved answers the question, or more work will not help. false: go on."
    )


class AnalystInput(Case):
    tools: tuple[Card, ...]


class PastTurn(Shape):
    """What the planner said in an earlier turn, for forms that only append."""

    seq: int
    """Of its step, so that an engine finds the very tokens."""
    turn: int
    plan: Plan


class PlannerInput(Case):
    analysis: Analysis
    tools: tuple[Card, ...]
    memory: tuple[Record, ...] = ()
    evidence: tuple[Piece, ...] = ()
    verdict: Verdict | None = None
    """Of the turn before. None: this is the first turn."""
    past: tuple[PastTurn, ...] = ()
    """Plans of earlier turns, oldest first."""
    turn: int
    remaining: int
    """Turns left, this one included."""


class ExecutorInput(Shape):
    question: str
    plan: Plan
    tool: Card
    memory: tuple[Record, ...] = ()
    evidence: tuple[Piece, ...] = ()


class VerifierInput(Case):
    analysis: Analysis
    tools: tuple[Card, ...]
    memory: tuple[Record, ...] = ()
    evidence: tuple[Piece, ...] = ()
    turn: int
    remaining: int
    """Turns left after this one."""
