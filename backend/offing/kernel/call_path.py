"""Call paths: where in the execution of a graph the running code is.

Within the run's own graph, the call path is the superstep and the path of the task. Within a
subgraph, it is the call path of the node that called the subgraph, followed by the steps and paths
of the subgraph. LangGraph's task ids change after a crash, so call paths do not contain them.
"""

from collections.abc import Mapping
from typing import Any

from langchain_core.callbacks import AsyncCallbackHandler
from langgraph.config import get_config

from offing.core.errors import OffingError

CallPath = tuple[int, str]
"""Superstep of the run's own graph, and path."""

PUSH_PREFIX = "__pregel_push"
"""Begins the path of a task that was started with `Send`, which does not name its node."""

TASK_SEPARATOR = ":"
"""Separator in front of a task id in a checkpoint namespace."""

LEVEL_SEPARATOR, SUBGRAPH_SEPARATOR = "|", ">"


class UntrackedSubgraphError(OffingError):
    """Code in a subgraph tried to reach its run, but the start of the subgraph was not observed."""

    code = "nested_graph"


class CallPathTracker(AsyncCallbackHandler):
    """Records the start of each node of one claim. Only graphs with subgraphs need it."""

    run_inline = True

    def __init__(self) -> None:
        self._path_by_namespace: dict[str, CallPath] = {}
        self.latest_superstep = 0
        """The latest superstep of the run's own graph that has begun."""

    async def on_chain_start(
        self, serialized: dict[str, Any], inputs: dict[str, Any], *, metadata: dict[str, Any] | None = None, **_: Any
    ) -> None:
        values = metadata or {}
        if namespace := values.get("langgraph_checkpoint_ns"):
            own = self._path_by_namespace.setdefault(str(namespace), _path_from_metadata(values))
            self._path_by_namespace[str(namespace).rpartition(TASK_SEPARATOR)[0]] = (
                own  # a stateful subgraph is called without the task id
            )
            self.latest_superstep = (
                self.latest_superstep if LEVEL_SEPARATOR in str(namespace) else max(self.latest_superstep, own[0])
            )

    def current_path(self) -> CallPath:
        """Return the call path of the running node.

        Raises UntrackedSubgraphError in a subgraph whose caller was not observed.
        """
        config = get_config()
        metadata: dict[str, Any] = config.get("metadata") or {}
        # A call with its own config, such as a summary, has no metadata of its node, but has the namespace.
        own = config.get("configurable", {}).get("checkpoint_ns", "")
        namespace = str(metadata.get("langgraph_checkpoint_ns", own))
        step, path = (
            _path_from_metadata(metadata) if "langgraph_step" in metadata else self._path_by_namespace[namespace]
        )
        *outer, _ = namespace.split(LEVEL_SEPARATOR)
        if not outer:
            return step, path
        first, *between = [self._get_caller(outer, depth) for depth in range(1, len(outer) + 1)]
        return int(first[0]), SUBGRAPH_SEPARATOR.join([first[1], *(f"{a}:{b}" for a, b in between), f"{step}:{path}"])

    def current_node(self) -> str:
        """Return the node of the run's own graph that is running, or that called the subgraph of the running node."""
        config = get_config()
        namespace = (config.get("metadata") or {}).get("langgraph_checkpoint_ns") or config.get("configurable", {}).get(
            "checkpoint_ns", ""
        )
        return str(namespace).split(LEVEL_SEPARATOR)[0].partition(TASK_SEPARATOR)[0]

    def _get_caller(self, levels: list[str], depth: int) -> tuple[int | str, str]:
        """Return the node at a depth. A bare number counts the subgraphs that one node called."""
        if levels[depth - 1].isdecimal():
            return levels[depth - 1], ""
        path = self._path_by_namespace.get(LEVEL_SEPARATOR.join(levels[:depth]))
        if path is None:
            raise UntrackedSubgraphError(
                "This subgraph was called without LangGraph's config. Pass the config of the node to it."
            )
        return path


def _path_from_metadata(metadata: Mapping[str, Any]) -> CallPath:
    return int(metadata["langgraph_step"]), "/".join(map(str, metadata["langgraph_path"]))
