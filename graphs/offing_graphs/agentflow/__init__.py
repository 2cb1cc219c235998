"""AgentFlow: planner, executor, verifier and generator around an evolving, structured memory."""

from offing_graphs.agentflow.graph import graph

__all__ = ["graph"]
