"""Research team: a question in parts, with one child run per part, then verification and a report."""

from offing_graphs.research_team.graph import graph, reviewed

__all__ = ["graph", "reviewed"]
