"""IterResearch: an agent whose workspace is rebuilt in each turn from question, report, last action and result."""

from offing_graphs.iterresearch.graph import graph

__all__ = ["graph"]
