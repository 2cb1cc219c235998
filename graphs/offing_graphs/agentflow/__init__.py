"""AgentFlow: a planner, an executor, a verifier and a generator around a structured memory."""

from offing_graphs.agentflow.graph import graph

__all__ = ["graph"]
