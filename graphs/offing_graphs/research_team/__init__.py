"""Research team: a question in parts, each researched by a run of its own, merged, verified and written up."""

from offing_graphs.research_team.graph import graph, reviewed

__all__ = ["graph", "reviewed"]
