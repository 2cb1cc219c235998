"""LangGraph's server API: its clients drive Offing's runs."""

from offing.protocols.langgraph.app import build_langgraph_app
from offing.protocols.langgraph.context import LangGraphContext, Principal

__all__ = ["LangGraphContext", "Principal", "build_langgraph_app"]
