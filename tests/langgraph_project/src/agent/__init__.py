"""An agent, in the structure of LangGraph's project template."""

from agent.graph import graph

__all__ = ["graph"]
