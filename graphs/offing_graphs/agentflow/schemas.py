"""Inputs and outputs of AgentFlow's roles, in addition to the schemas that all graphs share.

Field descriptions are part of the JSON schema in the prompt.
"""

from typing import Any

from pydantic import Field, StrictBool

from offing_graphs.shared.depth import ResearchPhase
from offing_graphs.shared.schemas import (
    Analysis,
    Coverage,
    EvidenceInput,
    FrozenModel,
    MemoryRecord,
    Plan,
    RetrievedPassage,
    TaskContext,
    ToolCard,
    is_none,
)


class Command(FrozenModel):
    """The executor's answer: one tool call."""

    tool: str = Field(description="Exact name of the planned tool.")
    args: dict[str, Any] = Field(description="Its arguments, as its JSON schema asks.")


class Verdict(FrozenModel):
    """The verifier's answer."""

    analysis: str = Field(description="Only what is missing and what contradicts what, in a few words.")
    coverage: tuple[Coverage, ...] = Field(default=(), description="One entry for each sub-question.")
    stop: StrictBool = Field(
        description="true: what was retrieved answers the question, or more work will not help. false: go on."
    )


class AnalystInput(TaskContext):
    tools: tuple[ToolCard, ...]


class PastTurn(FrozenModel):
    """The plan of an earlier turn, for prompt formats that only append."""

    seq: int
    """Seq of the step, by which an engine finds the exact tokens."""
    turn: int
    plan: Plan


class PlannerInput(TaskContext, EvidenceInput):
    analysis: Analysis
    tools: tuple[ToolCard, ...]
    memory: tuple[MemoryRecord, ...] = ()
    evidence: tuple[RetrievedPassage, ...] = ()
    verdict: Verdict | None = None
    """The verifier's output of the previous turn. `None` means that this is the first turn."""
    past: tuple[PastTurn, ...] = ()
    """Plans of earlier turns, oldest first."""
    turn: int
    remaining: int
    """Number of turns left, including this one."""
    phase: ResearchPhase | None = Field(default=None, exclude_if=is_none)
    """Phase of a deep run. `None` means that the run is not deep."""


class ExecutorInput(EvidenceInput):
    question: str
    plan: Plan
    tool: ToolCard
    memory: tuple[MemoryRecord, ...] = ()
    evidence: tuple[RetrievedPassage, ...] = ()


class VerifierInput(TaskContext, EvidenceInput):
    analysis: Analysis
    verdict: Verdict | None = Field(default=None, exclude_if=is_none)
    """The judgment after the previous turn. `None` means that there is none."""
    tools: tuple[ToolCard, ...]
    memory: tuple[MemoryRecord, ...] = ()
    evidence: tuple[RetrievedPassage, ...] = ()
    turn: int
    remaining: int
    """Number of turns left after this one."""
    phase: ResearchPhase | None = Field(default=None, exclude_if=is_none)
    """Phase of the next turn of a deep run. `None` means that the run is not deep."""
