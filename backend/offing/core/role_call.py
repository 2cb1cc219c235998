"""A role call as it is recorded: who was asked, its position in a segment, and the completions that were rejected."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from offing.core.model import Attempt, Sampled
from offing.core.trajectory import Fracture


@dataclass(frozen=True, slots=True)
class CallOrigin:
    """Who was asked, and when."""

    role: str
    engine: str
    superstep: int
    """Of the graph; a fork before the turn starts at the latest checkpoint before it."""


@dataclass(frozen=True, slots=True)
class SegmentPosition:
    """Where a turn stands among the segments of its run."""

    segment: int
    place: int
    """In its segment, from 0."""
    fracture: Fracture | None = None
    """Why a segment begins with it. None: it goes on."""
    parent: int | None = None
    """For a segment that begins: the role's one before. None: there is none."""
    parent_tokens: int | None = None
    """Tokens at the start that are the parent's. None: ids are not known, or there is no parent."""
    kept_messages: int = 0
    """Messages of the prompt that the segment has already."""
    kept_tokens: int = 0


@dataclass(frozen=True, slots=True)
class RejectedCompletion:
    """A completion that no role could use, as a turn of its own."""

    attempt: Attempt
    sampled: Sampled
    nth: int
    """Of its role call, from 1."""


def rejections(attempts: Sequence[Attempt]) -> list[RejectedCompletion]:
    """Those of a role call's failed attempts whose tokens are known."""
    return [RejectedCompletion(one, one.sampled, nth) for nth, one in enumerate(attempts, 1) if one.sampled]


def attempt_as_json(attempt: Attempt) -> dict[str, Any]:
    """An attempt as it is told beside the call that it belongs to; its tokens are in its turn."""
    usage: dict[str, Any] = asdict(attempt.usage) | {"usd": str(attempt.usage.usd)}
    return {name: getattr(attempt, name) for name in ("failure", "message", "text", "ms")} | {"usage": usage}
