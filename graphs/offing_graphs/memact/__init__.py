"""Memory as action: one agent that edits its own context; and the same agent with a summary whenever that is full."""

from offing_graphs.memact.graph import graph, supo

__all__ = ["graph", "supo"]
