"""AgentFlow's state with the mode beside it, so that its nodes work on it as they are."""

from typing import Any

from offing.sdk import RunView
from offing_graphs.agentflow import state as agentflow


class State(agentflow.State):
    """One run's state."""

    mode: str
    """The mode that the run is in, a Mode. Empty: none has been chosen."""


def start(run: RunView) -> dict[str, Any]:
    """Every key, so that a thread's earlier run leaves nothing behind."""
    return agentflow.start(run) | {"mode": ""}
