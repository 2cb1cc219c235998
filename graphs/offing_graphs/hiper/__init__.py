"""HiPER: one agent that keeps or switches a subgoal and acts in each turn."""

from offing_graphs.hiper.graph import graph

__all__ = ["graph"]
