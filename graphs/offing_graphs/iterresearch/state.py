"""What the graph remembers between its nodes: counters, step numbers and the reason to stop. Content is in steps.

The only home of the state's keys. Text never enters it: a node fetches the step that a number names.
"""

from typing import Any, TypedDict

from offing.sdk import RunView


class State(TypedDict):
    """One run's state. Every number is 0 and every word empty until something sets it."""

    turn: int
    """Rounds begun, from 1."""
    round: int
    """Seq of the latest round's answer: its report, and its action or answer."""
    tool: int
    """Seq of the tool call that the latest round asked for. 0: it has not been made."""
    heard: int
    """Seq up to which people's messages have been taken in."""
    stop: str
    """Why collecting has ended, a StopReason. Empty: it goes on."""


def start(run: RunView) -> dict[str, Any]:
    """Every key, so that a thread's earlier run leaves nothing behind."""
    state = State(turn=0, round=0, tool=0, heard=0, stop="")
    return dict(state)
