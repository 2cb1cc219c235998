"""Runs: their status, why they end, and when they may take another step.

The rules are pure functions of counts and clocks; they read no database and no wall clock.
"""

from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from uuid import UUID


class RunStatus(StrEnum):
    QUEUED = "queued"
    """Waiting for a worker."""
    RUNNING = "running"
    """Claimed by a worker."""
    WAITING = "waiting"
    """Waiting for a time, a person or a graph version, as `waiting_for` says."""
    PAUSED = "paused"
    """Paused by a person."""
    DONE = "done"
    """Ended with a complete or partial report."""
    FAILED = "failed"
    """Ended by an error of the graph or the platform, or because several claims made no progress.

    A partial report exists.
    """
    CANCELLED = "cancelled"
    """Ended by a person who did not want a report."""


TERMINAL_STATUSES = frozenset({RunStatus.DONE, RunStatus.FAILED, RunStatus.CANCELLED})


class StopReason(StrEnum):
    ANSWERED = "answered"
    """The graph considered its evidence sufficient.

    In AgentFlow the verifier decides this, in all other graphs the agent.
    """
    NOTHING_FOUND = "nothing_found"
    """Nothing was found that answers the question: no passage at all, or none that covers a part of it."""
    SATURATED = "saturated"
    """The latest turns of a deep run retrieved no new passage and covered no further part of the question."""
    TURN_LIMIT = "turn_limit"
    TOKEN_LIMIT = "token_limit"
    SPEND_LIMIT = "spend_limit"
    """The run reached its own cost limit."""
    TENANT_SPEND_LIMIT = "tenant_spend_limit"
    """The tenant reached its daily spending limit."""
    TIME_LIMIT = "time_limit"
    """The run reached its time limit or its deadline."""
    PROVIDER_DOWN = "provider_down"
    """No attempt of an engine gave a usable response."""
    INVALID_OUTPUT = "invalid_output"
    """An engine answered, but never in the format that the role requires."""
    CONTEXT_LIMIT = "context_limit"
    """The context exceeded the graph's own limit."""
    FINISH_REQUESTED = "finish_requested"
    """A person requested the run to stop collecting and to write its report."""
    CANCELLED = "cancelled"
    GRAPH_ERROR = "graph_error"
    """The graph's own code raised an exception."""
    NO_PROGRESS = "no_progress"
    """Several workers claimed the run without progress."""


class Depth(StrEnum):
    """How a run uses its turns."""

    QUICK = "quick"
    """Few turns for a first look."""
    STANDARD = "standard"
    """The run ends when its graph finds the evidence sufficient."""
    DEEP = "deep"
    """Breadth first, then depth on what is contested or missing, until the latest turns find nothing new."""


TURNS_BY_DEPTH = {Depth.QUICK: 4, Depth.STANDARD: 12, Depth.DEEP: 40}
"""Maximum number of turns of a run that names a depth and no number."""


@dataclass(frozen=True, slots=True)
class Budget:
    """Limits of one run. A run stops at the first limit that it reaches and then writes its report."""

    max_turns: int = 12
    """Maximum number of turns of the graph's loop. 0 means that the run writes its report at once."""
    max_tokens: int | None = None
    """Maximum number of prompt and completion tokens together. `None` means no limit."""
    max_cost_usd: Decimal | None = None
    """Maximum cost in USD, as reported by providers.

    `None` means no limit except the tenant's daily spending limit.
    """
    max_seconds: float | None = None
    """Maximum seconds of work, without pauses and waiting for a worker. `None` means no limit."""
    depth: Depth = Depth.STANDARD
    """How the run uses its turns."""

    def depth_field(self) -> dict[str, str]:
        """Return the depth as a field of a record. A standard run has none, so that its records stay as they were."""
        return {} if self.depth is Depth.STANDARD else {"depth": self.depth.value}


@dataclass(frozen=True, slots=True)
class RunUsage:
    """Usage of a run so far, including failed attempts."""

    turns: int = 0
    tokens: int = 0
    cost_usd: Decimal = field(default_factory=Decimal)
    seconds: float = 0.0


def find_exhausted_limit(usage: RunUsage, budget: Budget) -> StopReason | None:
    """Return the first limit that leaves no room for another call. `None` means that no limit is reached."""
    if usage.turns >= budget.max_turns:
        return StopReason.TURN_LIMIT
    if budget.max_tokens is not None and usage.tokens >= budget.max_tokens:
        return StopReason.TOKEN_LIMIT
    if budget.max_cost_usd is not None and usage.cost_usd >= budget.max_cost_usd:
        return StopReason.SPEND_LIMIT
    if budget.max_seconds is not None and usage.seconds >= budget.max_seconds:
        return StopReason.TIME_LIMIT
    return None


class CancelMode(StrEnum):
    DISCARD = "discard"
    """End at once without a report."""
    FINISH = "finish"
    """Stop collecting and write a report from the evidence so far."""


@dataclass(frozen=True, slots=True)
class FencingToken:
    """Fencing token of a claim. A write with a lower number than the latest claim's fails."""

    tenant_id: UUID
    run_id: UUID
    number: int
    thread_id: UUID | None = None
    epoch: int = 0
    """Increases whenever the claim reads its journal again.

    This invalidates all writes that the claim sent before.
    """
