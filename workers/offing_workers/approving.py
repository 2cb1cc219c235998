"""Asking whether a tool call may be made: the contract between the toolbelt and whoever asks a person.

The only home of that contract. It knows neither how a person is asked nor where the answer is kept.
"""

from dataclasses import dataclass
from typing import Any, Protocol

from offing.core.step import CallKey


@dataclass(frozen=True, slots=True)
class Approval:
    """What a person is asked to approve: exactly this call, and no other."""

    tool: str
    args: dict[str, Any]
    """As the tool would receive them: validated, with its defaults filled in."""
    rule: str
    """The rule of the tool policy that wants a person to be asked."""
    reason: str
    """Why, in the words of who wrote the rule. Empty: none were given."""


@dataclass(frozen=True, slots=True)
class Approved:
    """What came of asking."""

    allowed: bool
    words: str = ""
    """What the person said with it, or why nobody could be asked. A refused call's result carries it to the model."""


class Approver(Protocol):
    """Asks, and remembers the answer under the call's key.

    Nothing has been counted, declared or executed when this is called, so it may leave by an exception that suspends
    the run. The same call is then asked again under the same key, and the recorded answer holds for exactly the tool
    and the arguments that were shown: for others under that key a person is asked anew.
    """

    async def approve(self, approval: Approval, key: CallKey) -> Approved: ...


class NobodyToAsk:
    """Denies: for runs in which no person can be asked."""

    async def approve(self, approval: Approval, key: CallKey) -> Approved:
        return Approved(False, "Nobody can be asked.")
