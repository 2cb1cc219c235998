"""Who asks a model, by the name that its author gave; the only home of how LangGraph's metadata tell it. Pure."""

from collections.abc import Mapping
from typing import Any

MOST = 80
"""Code points of a name."""

NAMELESS = frozenset({"agent", "call_model", "llm", "model", "tools"})
"""Nodes whose names say nothing of whose they are; what holds them does."""

HOOKS = (".before_agent", ".after_agent", ".before_model", ".after_model")
"""Ends of the names of nodes that langchain makes of a middleware."""


def asker(metadata: Mapping[str, Any]) -> str:
    """The agent that was named, as by `create_agent`, else the innermost node with a name of its own. Empty: none."""
    if name := metadata.get("lc_agent_name"):
        return str(name)[:MOST]
    namespace = str(metadata.get("langgraph_checkpoint_ns") or metadata.get("checkpoint_ns") or "")
    nodes = [_plain(level.partition(":")[0]) for level in namespace.split("|")]
    return next((node[:MOST] for node in reversed(nodes) if node and not node.isdecimal() and node not in NAMELESS), "")


def _plain(node: str) -> str:
    hook = next((hook for hook in HOOKS if node.endswith(hook)), "")
    return node.removesuffix(hook)
