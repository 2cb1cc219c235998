"""Router: answers at once, part by part, or with AgentFlow's whole loop, whichever is worth most."""

from offing_graphs.router.graph import graph

__all__ = ["graph"]
