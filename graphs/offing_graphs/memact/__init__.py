"""Memory as Action: an agent that edits its own context, and one that summarizes its full context."""

from offing_graphs.memact.graph import graph, supo

__all__ = ["graph", "supo"]
