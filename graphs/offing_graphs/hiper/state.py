"""What the graph remembers between its nodes: counters, step numbers and the reason to stop. Content is in steps.

The only home of the state's keys. The subgoal is no part of it: it is read back from the latest turn's record.
"""

from typing import Any, TypedDict

from offing.sdk import RunView


class State(TypedDict):
    """One run's state. Every number is 0 and every word empty until something sets it."""

    turn: int
    """Turns begun, from 1."""
    said: int
    """Seq of the agent's latest turn."""
    answer: int
    """Seq of its latest turn that answered. 0: none did."""
    heard: int
    """Seq up to which people's messages have been taken in."""
    stop: str
    """Why collecting has ended, a StopReason. Empty: it goes on."""


def start(run: RunView) -> dict[str, Any]:
    """Every key, so that a thread's earlier run leaves nothing behind."""
    return dict(State(turn=0, said=0, answer=0, heard=0, stop=""))
