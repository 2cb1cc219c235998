"""What a run is: its states, why it ends, and when it may take another step.

Pure rules over counts and clocks; nothing here reads a database or a wall clock.
"""

from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from uuid import UUID


class RunStatus(StrEnum):
    QUEUED = "queued"
    """Waits for a worker."""
    RUNNING = "running"
    """A worker holds its lease."""
    WAITING = "waiting"
    """Waits for a time, a person or a graph version; `waiting_for` says which."""
    PAUSED = "paused"
    """A person paused it."""
    DONE = "done"
    """Ended with a report, complete or partial."""
    FAILED = "failed"
    """Ended by a fault of the graph or the platform; a partial report exists."""
    CANCELLED = "cancelled"
    """Ended by a person who did not want a report."""
    DEAD = "dead"
    """Ended because it made no progress in several claims; a partial report exists."""


TERMINAL = frozenset({RunStatus.DONE, RunStatus.FAILED, RunStatus.CANCELLED, RunStatus.DEAD})


class StopReason(StrEnum):
    ANSWERED = "answered"
    """The flow judged its evidence sufficient: AgentFlow by its verifier, the others by their agent."""
    NOTHING_FOUND = "nothing_found"
    """No source holds anything on the question."""
    TURN_LIMIT = "turn_limit"
    TOKEN_LIMIT = "token_limit"
    SPEND_LIMIT = "spend_limit"
    """The run's own money budget."""
    TENANT_SPEND_LIMIT = "tenant_spend_limit"
    """The tenant's cap for the day."""
    TIME_LIMIT = "time_limit"
    """The run's seconds or its deadline."""
    PROVIDER_DOWN = "provider_down"
    """An engine gave no usable answer in all attempts."""
    INVALID_OUTPUT = "invalid_output"
    """An engine answered, but never in the form that the role needs."""
    CONTEXT_LIMIT = "context_limit"
    """The flow's own limit on its context was passed."""
    ASKED_TO_WRITE = "asked_to_write"
    """A person asked to stop and write what there is."""
    CANCELLED = "cancelled"
    GRAPH_ERROR = "graph_error"
    """The graph's own code raised."""
    NO_PROGRESS = "no_progress"
    """Several workers took the run and none got further."""


@dataclass(frozen=True, slots=True)
class Budget:
    """Limits on one run. A run stops at the first one it reaches, and then writes what it has."""

    turns: int = 12
    """Turns of the graph's loop. 0: the run goes straight to its report."""
    tokens: int | None = None
    """Prompt and completion tokens together. None: no limit."""
    usd: Decimal | None = None
    """Money as reported by providers. None: no limit but the tenant's cap."""
    seconds: float | None = None
    """Seconds of work, waiting for a worker and pauses excluded. None: no limit."""


@dataclass(frozen=True, slots=True)
class Spent:
    """What a run has used so far; failed attempts count."""

    turns: int = 0
    tokens: int = 0
    usd: Decimal = field(default_factory=Decimal)
    seconds: float = 0.0


def exhausted(spent: Spent, budget: Budget) -> StopReason | None:
    """The first limit that leaves no room for another call. None: there is room in all of them."""
    if spent.turns >= budget.turns:
        return StopReason.TURN_LIMIT
    if budget.tokens is not None and spent.tokens >= budget.tokens:
        return StopReason.TOKEN_LIMIT
    if budget.usd is not None and spent.usd >= budget.usd:
        return StopReason.SPEND_LIMIT
    if budget.seconds is not None and spent.seconds >= budget.seconds:
        return StopReason.TIME_LIMIT
    return None


class CancelMode(StrEnum):
    DISCARD = "discard"
    """End now, write nothing."""
    WRITE = "write"
    """Stop collecting and write a report of what there is."""


@dataclass(frozen=True, slots=True)
class Fence:
    """Who may write to a run: the claim's number. A larger one makes all smaller ones void."""

    tenant: UUID
    run: UUID
    number: int
    thread: UUID | None = None
    epoch: int = 0
    """Rises whenever the claim reads its journal again, which makes void what it has sent before."""
