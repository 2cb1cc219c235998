"""The LangGraph adapter: how the platform runs a graph that uses only LangGraph."""

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

from offing.core.report import Evidence, ReportDraft
from offing.sdk.context import RunInfo

ReportFunction = Callable[[RunInfo, Mapping[str, Any], tuple[Evidence, ...]], ReportDraft | None]
"""Builds the report draft from the run, the graph's final values and its evidence.

`None` means that there is no answer.
"""


@dataclass(frozen=True, slots=True, eq=False)
class GraphOpening:
    """Why and with what a graph that a function makes is opened."""

    config: Mapping[str, Any] = field(default_factory=lambda: {"configurable": {}})
    """LangGraph's configuration."""
    store: Any = None
    """The store of the run. `None` means that the graph is only looked at and not executed."""
    context: Any = None
    """LangGraph's runtime context of the run."""


@dataclass(frozen=True, slots=True, eq=False)
class LangGraphAdapter:
    """Its nodes find the run through `offing.sdk.current_run`, and its calls are keyed by their requests."""

    build_report: ReportFunction
    context: Callable[[RunInfo], Any] | None = None
    """Returns the graph's own runtime context. `None` means that it has none."""
    state_types: tuple[type, ...] = ()
    """The graph's own classes in its state, in addition to LangChain's messages.

    Values of other classes are restored from a checkpoint as plain data.
    """
    execution_context: Callable[[], AbstractContextManager[None]] = nullcontext
    """Returns the context in which the graph is executed."""
    store_index: Any = None
    """Semantic index of the graph's store, as LangGraph's IndexConfig. `None` means no semantic search."""
    store_ttl: Any = None
    """Expiry of items in the store, as LangGraph's TTLConfig. `None` means that items do not expire."""
    records_own_models: bool = False
    """Whether calls of the graph's own LangChain chat models are recorded as role calls."""
    open_graph: Callable[[GraphOpening], AbstractAsyncContextManager[Any]] | None = None
    """Opens the compiled graph for one run.

    `None` means that all runs use the graph that `Graph.build` returns.
    """
