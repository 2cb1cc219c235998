"""Router: answers with one search, with one search per part, or with AgentFlow's loop."""

from offing_graphs.router.graph import graph

__all__ = ["graph"]
