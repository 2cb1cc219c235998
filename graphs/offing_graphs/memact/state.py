"""What the graph remembers between its nodes: numbers, and words of one word. Content is in the run's steps.

The only home of the state's keys. The list of live records is bounded by the context's window, however long the run.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypedDict

from offing.sdk import RunView
from offing_graphs.memact.context import record_id


class State(TypedDict):
    """One run's state. Every number is 0, every list and word empty until something sets it."""

    turn: int
    """Turns begun, from 1."""
    call: int
    """Seq of the latest action."""
    next: str
    """Where that action leads: tool, memory or finish."""
    records: list[int]
    """The live records, oldest first; of each its turn, and the seqs of its action and of its observation."""
    since: int
    """Turn up to which records stood in the context when the present segment began."""
    fracture: str
    """Why the next call does not go on from the last one. Empty: it does."""
    summary: int
    """Seq of the latest summary."""
    summaries: int
    """Summaries so far."""
    heard: list[int]
    """Of each message from a person its seq, and the turn before which it was first shown."""
    stop: str
    """Why the work has ended, a StopReason. Empty: it goes on."""


@dataclass(frozen=True, slots=True)
class Place:
    """A live record, as seqs of the steps that hold it."""

    turn: int
    action: int
    observation: int

    @property
    def id(self) -> str:
        return record_id(self.turn)


def start(run: RunView) -> dict[str, Any]:
    """Every key, so that a thread's earlier run leaves nothing behind."""
    state = State(turn=0, call=0, next="", records=[], since=0, fracture="", summary=0, summaries=0, heard=[], stop="")
    return dict(state)


def places(state: State) -> tuple[Place, ...]:
    """The live records, oldest first."""
    flat = state["records"]
    return tuple(Place(*flat[n : n + 3]) for n in range(0, len(flat), 3))


def flat(records: Sequence[Place]) -> list[int]:
    """The records as the state keeps them."""
    return [number for place in records for number in (place.turn, place.action, place.observation)]
