"""Records of a role call: its origin, its position in a segment, and its rejected completions."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from offing.core.model import FailedAttempt, SampledCompletion, Usage
from offing.core.trajectory import BoundaryReason

USAGE_DETAILS = ("cached_prompt_tokens", "reasoning_tokens")
"""Parts of a usage that are left out if they are 0."""


@dataclass(frozen=True, slots=True)
class CallOrigin:
    """Role, engine and superstep of a call."""

    role: str
    engine: str
    superstep: int
    """Superstep of the graph. A fork before the role call starts at the latest checkpoint before it."""


@dataclass(frozen=True, slots=True)
class SegmentPosition:
    """Position of a role call among the segments of its run."""

    segment_idx: int
    position: int
    """Position in the segment, from 0."""
    boundary_reason: BoundaryReason | None = None
    """Why a segment begins with this role call. `None` means that it continues a segment."""
    parent_idx: int | None = None
    """Index of the role's previous segment, if a segment begins. `None` means that there is none."""
    shared_tokens: int | None = None
    """Number of tokens at the start that are shared with the previous segment.

    `None` means that token ids are unknown or that there is no previous segment.
    """
    kept_messages: int = 0
    """Number of messages of the prompt that the segment already contains."""
    kept_tokens: int = 0


@dataclass(frozen=True, slots=True)
class RejectedCompletion:
    """A rejected completion, which is recorded as a separate role call."""

    attempt: FailedAttempt
    completion: SampledCompletion
    attempt_number: int
    """Number of the attempt within its role call, from 1."""


def extract_rejected_completions(attempts: Sequence[FailedAttempt]) -> list[RejectedCompletion]:
    """Return the failed attempts of a role call whose tokens are known."""
    return [RejectedCompletion(one, one.completion, nth) for nth, one in enumerate(attempts, 1) if one.completion]


def attempt_to_json(attempt: FailedAttempt) -> dict[str, Any]:
    """Return an attempt as JSON for the step of its role call. Its tokens are in their own record."""
    model = {"model": attempt.model} if attempt.model else {}
    return (
        {name: getattr(attempt, name) for name in ("failure", "message", "text", "ms")}
        | model
        | {"usage": usage_to_json(attempt.usage)}
    )


def usage_to_json(usage: Usage) -> dict[str, Any]:
    """Return usage as JSON for a step. Details are left out if they are 0, as in earlier versions."""
    values: dict[str, Any] = asdict(usage) | {"cost_usd": str(usage.cost_usd)}
    return {name: value for name, value in values.items() if value or name not in USAGE_DETAILS}
