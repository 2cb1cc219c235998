"""Whether a subgraph continues its latest call or begins another one.

A graph that continues from a checkpoint tells the subgraphs of its next superstep to continue, too.
LangGraph then ignores their input and continues each from its own latest checkpoint. For a subgraph
that keeps its state between calls (`checkpointer=True`), this may be the end of an earlier call: a
worker can crash or a slice can end after the checkpoint of the calling graph and before the first
checkpoint of the new call. Such a subgraph would do nothing, and its caller would continue with the
state of the earlier call.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph._internal._constants import CONFIG_KEY_CHECKPOINT_MAP, CONFIG_KEY_RESUMING


class SubgraphCalls:
    """Tells the calls of subgraphs apart, for one claim.

    A call is identified by the checkpoints of the graphs around it.
    """

    def __init__(self) -> None:
        self._positions: dict[str, frozenset[str]] = {}
        """Ids of the position where each graph with stored checkpoints started, by its namespace."""

    def set_position(self, ns: str, ids: Iterable[str]) -> None:
        """Set the checkpoints that stand for the position where a graph starts.

        These are its latest checkpoint and, if the state was updated there, the checkpoints before the
        updates. A subgraph that was called before an update continues after it, as in LangGraph.
        """
        self._positions[ns] = frozenset(ids)

    def begin_unstarted_call(self, config: RunnableConfig, metadata: Mapping[str, Any]) -> None:
        """Let a subgraph begin with its input if its latest checkpoint belongs to an earlier call.

        `config` is the config with which LangGraph loads that checkpoint. The instruction to continue is
        removed from it, as LangGraph itself does for a subgraph that is replayed. `metadata` is the
        metadata of the checkpoint.
        """
        configurable = config.get("configurable", {})
        callers: Mapping[str, str] = configurable.get(CONFIG_KEY_CHECKPOINT_MAP) or {}
        if configurable.get(CONFIG_KEY_RESUMING) and not self._is_from_call(callers, metadata.get("parents") or {}):
            del configurable[CONFIG_KEY_RESUMING]

    def _is_from_call(self, callers: Mapping[str, str], parents: Mapping[str, str]) -> bool:
        """Return whether a checkpoint with these parents was made in the call from these checkpoints.

        A graph without stored checkpoints gives its current one another id when it runs again, so it is
        left out.
        """
        levels = [(parents.get(ns), id, self._positions[ns]) for ns, id in callers.items() if ns in self._positions]
        return not parents or all(parent == id or {parent, id} <= position for parent, id, position in levels)
