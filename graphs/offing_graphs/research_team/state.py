"""What the graph remembers between its nodes: counters, step numbers and the reason to stop. Content is in steps.

The only home of the state's keys. Text never enters it: a node fetches the step that a number names.
"""

from typing import Any, TypedDict

from offing.sdk import RunView


class State(TypedDict):
    """One run's state. Every number is 0 and every word empty until something sets it."""

    turn: int
    """Turns begun, from 1; those of child runs count."""
    analysis: int
    """Seq of the plan's step."""
    parts: int
    """How many parts the plan has."""
    part: int
    """Which of them is worked on, from 0. As many as there are: the question as a whole."""
    since: int
    """Turns that were over when this part was begun."""
    plan: int
    """Seq of the latest planned step."""
    tool: int
    """Seq of the latest tool call."""
    verdict: int
    """Seq of the latest verdict on this part. 0: there is none."""
    heard: int
    """Seq up to which people's messages have been taken in."""
    team: int
    """Child runs that have been sent. 0: none."""
    reviews: int
    """How often a person asked for another plan."""
    replan: int
    """1: another plan is to be made now."""
    stop: str
    """Why collecting has ended, a StopReason. Empty: it goes on."""


def start(run: RunView) -> dict[str, Any]:
    """Every key, so that a thread's earlier run leaves nothing behind."""
    numbers = ("turn", "analysis", "parts", "part", "since", "plan", "tool", "verdict", "heard", "team")
    numbers += ("reviews", "replan")
    return dict.fromkeys(numbers, 0) | {"stop": ""}
