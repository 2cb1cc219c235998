"""IterResearch: an agent whose workspace is built anew from question, report, last action and result."""

from offing_graphs.iterresearch.graph import graph

__all__ = ["graph"]
