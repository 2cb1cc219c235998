"""Declaration, call and result of a tool."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any
from uuid import UUID

from pydantic import BaseModel


class SideEffect(StrEnum):
    PURE = "pure"
    """Only reads. The call may be repeated freely."""
    IDEMPOTENT = "idempotent"
    """Has a side effect, but repeating the call with the same key changes nothing more."""
    AT_MOST_ONCE = "at_most_once"
    """Has a side effect that must not happen twice.

    If the worker crashes during the call, its outcome is recorded as unknown.
    """


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """Declaration of a tool. The planner reads it; the tool policy and the journal act on it."""

    name: str
    description: str
    args: type[BaseModel]
    """Schema of the arguments. Undeclared arguments are rejected."""
    label: str
    """Word shown in the timeline: search, read, calculate."""
    side_effect: SideEffect = SideEffect.PURE
    timeout_seconds: float = 30.0
    untrusted: bool = False
    """Whether the result is text from outside, which models read as data and never as instructions."""
    sends_data_out: bool = False
    """Whether the arguments are sent to third-party servers."""
    third_party: bool = False
    """Whether the description and the argument schema come from a third party.

    Models then read them as data, too.
    """


@dataclass(frozen=True, slots=True)
class SourceSpan:
    """A range of an extracted text in Unicode code points, end exclusive."""

    text_id: UUID
    start: int
    end: int

    def contains(self, other: "SourceSpan") -> bool:
        return self.text_id == other.text_id and self.start <= other.start and other.end <= self.end

    def overlaps(self, other: "SourceSpan") -> bool:
        """Return whether both spans have a code point in common."""
        return self.text_id == other.text_id and self.start < other.end and other.start < self.end


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """Output of a tool."""

    content: dict[str, Any]
    """JSON for the model and the record."""
    title: str
    """Title in the timeline."""
    detail: str = ""
    spans: tuple[SourceSpan, ...] = ()
    """Spans of the document library that the run has now read and may therefore cite."""


class ToolStatus(StrEnum):
    OK = "ok"
    DENIED = "denied"
    """The tool policy of the run denies the call."""
    INVALID = "invalid"
    """The tool does not exist, or its schema rejects the arguments."""
    FAILED = "failed"
    TIMEOUT = "timeout"
    UNKNOWN_OUTCOME = "unknown_outcome"
    """A worker crashed during an at-most-once call."""


@dataclass(frozen=True, slots=True)
class ToolResult:
    """A finished tool call as the graph receives it. It is always a value, never an exception."""

    seq: int
    """Number of the step that records it."""
    tool: str
    args: dict[str, Any]
    status: ToolStatus
    content: dict[str, Any] = field(default_factory=dict[str, Any])
    message: str = ""
    """Reason why the status is not OK, in a sentence for a model or a person. Empty for OK."""
    spans: tuple[SourceSpan, ...] = ()
