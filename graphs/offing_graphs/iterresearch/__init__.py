"""IterResearch: one agent whose workspace is built anew each round from question, report, last action and result."""

from offing_graphs.iterresearch.graph import graph

__all__ = ["graph"]
