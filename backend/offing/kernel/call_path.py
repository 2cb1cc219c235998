"""Where in a graph's execution the running code is.

Within the run's own graph that is the superstep and the path of the task. Within a subgraph it is the call path of the
node that called it, followed by the subgraph's own steps and paths. LangGraph's task ids differ after a loss, so they
are no part of it.
"""

from collections.abc import Mapping
from typing import Any

from langchain_core.callbacks import AsyncCallbackHandler
from langgraph.config import get_config

from offing.core.errors import OffingError

CallPath = tuple[int, str]
"""Superstep of the run's own graph, and path."""

TASK = ":"
"""In a namespace, in front of the id of the task."""

LEVEL, INNER = "|", ">"


class NestedGraph(OffingError):
    """A subgraph that the platform did not see begin tried to reach its run."""

    code = "nested_graph"


class CallPathTracker(AsyncCallbackHandler):
    """Remembers for one claim where each node began. Only graphs that have graphs within them need it."""

    run_inline = True

    def __init__(self) -> None:
        self._at: dict[str, CallPath] = {}
        self.latest = 0
        """The superstep of the run's own graph that began last."""

    async def on_chain_start(
        self, serialized: dict[str, Any], inputs: dict[str, Any], *, metadata: dict[str, Any] | None = None, **_: Any
    ) -> None:
        known = metadata or {}
        if namespace := known.get("langgraph_checkpoint_ns"):
            own = self._at.setdefault(str(namespace), _own(known))
            self._at[str(namespace).rpartition(TASK)[0]] = own  # a subgraph with a memory is called without the id
            self.latest = self.latest if LEVEL in str(namespace) else max(self.latest, own[0])

    def current(self) -> CallPath:
        """Return the call path of the running node. Raises NestedGraph in a subgraph whose caller was not seen."""
        config = get_config()
        metadata: dict[str, Any] = config.get("metadata") or {}
        # A call with a config of its own, such as a summary, has lost its node's metadata, and keeps the namespace.
        own = config.get("configurable", {}).get("checkpoint_ns", "")
        namespace = str(metadata.get("langgraph_checkpoint_ns", own))
        step, path = _own(metadata) if "langgraph_step" in metadata else self._at[namespace]
        *outer, _ = namespace.split(LEVEL)
        if not outer:
            return step, path
        first, *between = [self._caller(outer, depth) for depth in range(1, len(outer) + 1)]
        return int(first[0]), INNER.join([first[1], *(f"{a}:{b}" for a, b in between), f"{step}:{path}"])

    def _caller(self, outer: list[str], depth: int) -> tuple[int | str, str]:
        """The node at a depth; a bare number counts the subgraphs that one node called."""
        if outer[depth - 1].isdecimal():
            return outer[depth - 1], ""
        found = self._at.get(LEVEL.join(outer[:depth]))
        if found is None:
            raise NestedGraph(
                "This subgraph was called outside LangGraph's own config; pass the node's config on to it."
            )
        return found


def _own(metadata: Mapping[str, Any]) -> CallPath:
    return int(metadata["langgraph_step"]), "/".join(map(str, metadata["langgraph_path"]))
