"""The parts that every graph is built from: an empty state graph, a router on stop reasons, and the version."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from offing.sdk import RunContext, compute_content_hash

ROOT = Path(__file__).parent.parent
SHARED_PACKAGES = ("shared", "extractive")
"""Packages that belong to the version of every graph."""


def create_state_graph(state: type[Any]) -> Any:
    """Return an empty LangGraph graph over a state. Its nodes get the run context."""
    from langgraph.graph import StateGraph

    untyped: Any = StateGraph  # LangGraph's stubs bound the context to dataclasses, and ours is a protocol
    return untyped(state, context_schema=RunContext)


def build_stop_router(next_node_name: str, final_node_name: str) -> Callable[[Any], Awaitable[str]]:
    """Return a router to `next_node_name`, or to `final_node_name` once the state has a stop reason.

    The router is asynchronous, because LangGraph runs a synchronous router in another thread.
    """

    async def next_node(state: Any) -> str:
        return final_node_name if state["stop"] else next_node_name

    return next_node


def compute_version(*packages: str) -> str:
    """Return the version of a graph: the content hash of its packages and of those that all graphs share."""
    return compute_content_hash(*(ROOT / name for name in (*packages, *SHARED_PACKAGES)))
