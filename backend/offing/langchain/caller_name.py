"""The name of the agent or node that calls a model, from LangGraph's metadata. The functions are pure."""

from collections.abc import Mapping
from typing import Any

MAX_NAME_CHARS = 80
"""Maximum number of code points of a name."""

GENERIC_NODE_NAMES = frozenset({"agent", "call_model", "llm", "model", "tools"})
"""Generic node names. The name of the enclosing agent or node is used instead."""

MIDDLEWARE_HOOKS = (".before_agent", ".after_agent", ".before_model", ".after_model")
"""Suffixes of the nodes that LangChain creates for a middleware."""


def find_caller_name(metadata: Mapping[str, Any]) -> str:
    """Return the name of the calling agent or node.

    It is the name given to `create_agent`, else that of the innermost node with a specific name. An
    empty string means that there is none.
    """
    if name := metadata.get("lc_agent_name"):
        return str(name)[:MAX_NAME_CHARS]
    namespace = str(metadata.get("langgraph_checkpoint_ns") or metadata.get("checkpoint_ns") or "")
    nodes = [_strip_hook(level.partition(":")[0]) for level in namespace.split("|")]
    return next(
        (
            node[:MAX_NAME_CHARS]
            for node in reversed(nodes)
            if node and not node.isdecimal() and node not in GENERIC_NODE_NAMES
        ),
        "",
    )


def _strip_hook(node: str) -> str:
    hook = next((hook for hook in MIDDLEWARE_HOOKS if node.endswith(hook)), "")
    return node.removesuffix(hook)
