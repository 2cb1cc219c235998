"""AgentFlow's state with the mode, so that AgentFlow's nodes run on it unchanged."""

from offing_graphs.agentflow import state as agentflow


class State(agentflow.State):
    """State of one run."""

    mode: str
    """The `Mode` of the run. Empty means that none has been chosen."""
