"""What comes of judging a tool call: the only home of the verdicts."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Verdict(StrEnum):
    ALLOW = "allow"
    DENY = "deny"
    ASK = "ask"
    """A person decides about exactly this call."""
    REPLACE = "replace"
    """The call is not made; the decision says what happens instead."""


@dataclass(frozen=True, slots=True)
class Replacement:
    """A call in place of another. It has yet to be validated and judged."""

    tool: str
    args: dict[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class Decision:
    """What was decided about one call."""

    verdict: Verdict
    rule: str = ""
    """The rule that decided. Empty: none did."""
    reason: str = ""
    """Why it is not simply allowed, for a model or a person; of a replacement, the message that stands for a result."""
    instead: Replacement | None = None
    """None: nothing is called instead."""

    @property
    def allowed(self) -> bool:
        """Whether the call may be made as it is, at once."""
        return self.verdict is Verdict.ALLOW


def denied(reason: str, rule: str = "") -> Decision:
    return Decision(Verdict.DENY, rule, reason)
