"""What a tool declares, what it is asked, and what it gives back. Knows no tool."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any
from uuid import UUID

from pydantic import BaseModel


class Effect(StrEnum):
    PURE = "pure"
    """Reads only; may be called again freely."""
    IDEMPOTENT = "idempotent"
    """Has an effect; calling it again with the same key changes nothing more."""
    AT_MOST_ONCE = "at_most_once"
    """Has an effect that must not happen twice: after a loss in mid-call the outcome is recorded as unknown."""


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool's declaration; the planner sees it, the policy and the journal act on it."""

    name: str
    description: str
    args: type[BaseModel]
    """Its argument schema; extra arguments are refused."""
    verb: str
    """The word shown in a timeline: search, read, calculate."""
    effect: Effect = Effect.PURE
    timeout_seconds: float = 30.0
    untrusted: bool = False
    """True: its result is text from outside, shown to models as data and never as instructions."""
    outward: bool = False
    """True: what it is given leaves for other people's servers."""
    foreign: bool = False
    """True: its description and argument schema were written outside, and are shown to models as data, too."""


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of a text artefact, in Unicode code points, end excluded."""

    artefact: UUID
    start: int
    end: int

    def holds(self, other: "Span") -> bool:
        return self.artefact == other.artefact and self.start <= other.start and other.end <= self.end


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """What a tool found."""

    content: dict[str, Any]
    """JSON for the model and the record."""
    title: str
    """What a timeline shows."""
    detail: str = ""
    spans: tuple[Span, ...] = ()
    """Everything of the library that the run has now seen, and may therefore cite."""


class ToolStatus(StrEnum):
    OK = "ok"
    DENIED = "denied"
    """The run's tool policy does not allow this call."""
    INVALID = "invalid"
    """No such tool, or arguments that its schema refuses."""
    FAILED = "failed"
    TIMEOUT = "timeout"
    UNKNOWN_OUTCOME = "unknown_outcome"
    """A worker was lost in the middle of an at-most-once call."""


@dataclass(frozen=True, slots=True)
class ToolResult:
    """A finished tool call as the graph sees it; always a value, never an exception."""

    seq: int
    """The step that records it."""
    tool: str
    args: dict[str, Any]
    status: ToolStatus
    content: dict[str, Any] = field(default_factory=dict[str, Any])
    message: str = ""
    """Why it is not OK, in a sentence that a model or a person can act on. Empty when OK."""
    spans: tuple[Span, ...] = ()
