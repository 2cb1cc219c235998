"""How a run comes to its end: what a stop means, and what the report says of it. Knows no node."""

from typing import Protocol

from offing.sdk import StopReason
from offing_graphs.agentflow.shapes import Verdict
from offing_graphs.parts.shapes import Record


class Found(Protocol):
    """What a run has collected."""

    @property
    def found(self) -> bool:
        """There is something to write about."""
        ...

    @property
    def memory(self) -> tuple[Record, ...]: ...


def ending(verdict: Verdict) -> StopReason:
    """What a stop means: nothing is answered when the verifier says so of every part."""
    nothing = bool(verdict.coverage) and not any(c.covered for c in verdict.coverage)
    return StopReason.NOTHING_FOUND if nothing else StopReason.ANSWERED


def final_reason(table: Found, reason: StopReason) -> StopReason:
    """The reason as the report states it: a run that looked and has nothing says so."""
    looked = any(record.status == "ok" for record in table.memory)
    if not table.found and looked and reason in {StopReason.ANSWERED, StopReason.TURN_LIMIT}:
        return StopReason.NOTHING_FOUND
    return reason
