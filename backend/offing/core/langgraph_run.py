"""What a client of LangGraph's API asks of one run. Values without input or output."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any, Literal

from offing.core.run import StopReason

Breakpoints = tuple[str, ...] | Literal["*"] | None
"""Nodes at which a run stops. `*` means all nodes, `None` no node."""

LANGGRAPH = "langgraph"
"""The protocol of runs that LangGraph's clients make."""

STOPS: Mapping[StopReason, str] = {
    StopReason.TURN_LIMIT: "The run has made as many model calls as its budget allows.",
    StopReason.TOKEN_LIMIT: "The run has used as many tokens as its budget allows.",
    StopReason.SPEND_LIMIT: "The run has cost as much as its budget allows.",
    StopReason.TENANT_SPEND_LIMIT: "The tenant has reached its daily spending limit. Raise it, or wait until tomorrow.",
    StopReason.TIME_LIMIT: "The run has reached its time limit.",
    StopReason.PROVIDER_DOWN: "No attempt to call the model gave a usable response.",
    StopReason.INVALID_OUTPUT: "The model answered, but never in the format that the graph requires.",
    StopReason.CONTEXT_LIMIT: "The context is longer than the model accepts.",
}
"""Why a run stopped before the end of its graph, in words. Its clients get an error."""


class Multitask(StrEnum):
    """What happens to a run whose thread has an active run."""

    ENQUEUE = "enqueue"
    """It waits for the earlier runs."""
    REJECT = "reject"
    """It is rejected."""
    INTERRUPT = "interrupt"
    """The active run is cancelled and keeps what it has done."""
    ROLLBACK = "rollback"
    """The active run is cancelled and deleted."""


@dataclass(frozen=True, slots=True)
class RunArguments:
    """How the graph of a run is invoked, and what of it is streamed."""

    input: Any = None
    """The graph's input. `None` without a command means to continue where the thread stopped."""
    command: Mapping[str, Any] | None = None
    """`resume`, `update` and `goto` as JSON. `None` means that the run has an input."""
    config: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """`configurable`, `recursion_limit` and `tags`, with those of the assistant."""
    context: Mapping[str, Any] | None = None
    """The runtime context of the graph. `None` means the graph's own."""
    checkpoint: Mapping[str, Any] | None = None
    """`checkpoint_id` and `checkpoint_ns` of the checkpoint to start from. `None` means the latest."""
    interrupt_before: Breakpoints = None
    interrupt_after: Breakpoints = None
    stream_modes: tuple[str, ...] = ("values",)
    """What is streamed, in the words of the clients."""
    stream_subgraphs: bool = False
    durability: str = "async"
    """When checkpoints are stored: `sync`, `async` or `exit`."""
    streams_thread: bool = False
    """Whether the run streams for the thread-centric protocol. It then streams everything."""
    user: Mapping[str, Any] | None = None
    """The user of a project's `Auth` object who asks, without secrets. `None` means that there is none."""

    def to_json(self) -> dict[str, Any]:
        """Return the arguments as JSON. Without a user there is no `user`, as in rows of earlier versions."""
        stored = asdict(self)
        if self.user is None:
            del stored["user"]
        return stored

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> "RunArguments":
        """Return the arguments that `to_json` stored."""
        values: dict[str, Any] = dict(stored)
        for name in ("interrupt_before", "interrupt_after"):
            if isinstance(values[name], list):
                values[name] = tuple(values[name])
        values["stream_modes"] = tuple(values["stream_modes"])
        return cls(**values)


def explain_stop(stop: StopReason, detail: str = "") -> str:
    """Return the error of a run that stopped before its end: its kind, a colon, and a message. Empty means no error."""
    return f"{stop}: {detail or STOPS[stop]}" if stop in STOPS else ""
