"""Check of compile options.

It finds objects compiled into a graph or a subgraph that behave differently on the platform.
"""

from typing import Any

from langgraph.store.memory import InMemoryStore

from offing.sdk import Graph
from offing.testing.graph_checks.issue import ERROR, WARNING, GraphIssue
from offing.testing.graph_checks.reachable_values import GraphWalk, ReachedValue


def find_compile_issues(graph: Graph, walk: GraphWalk) -> list[GraphIssue]:
    """Return issues for objects passed to `compile(…)`, and for stores in the graph's code.

    The objects are stores, caches, checkpointers and breakpoints.
    """
    issues = [_build_memory_store_issue(one) for one in walk.values if isinstance(one.value, InMemoryStore)]
    for one in walk.graphs:
        within, location = one.value, f"node {one.node!r}" if one.node else graph.name
        issues += _find_replaced_stores(graph, within.store, location)
        if one.node and not isinstance(within.checkpointer, bool | None):
            kind = type(within.checkpointer).__name__
            why = f"Its subgraph is compiled with its own {kind}, whose content is lost when the worker crashes."
            remedy = (
                "Compile the subgraph with checkpointer=True to keep its state for the run, or without a checkpointer."
            )
            issues.append(GraphIssue(ERROR, "own-checkpointer", location, why, remedy))
        if one.node and within.cache is not None:
            why = "Its subgraph is compiled with its own cache, which the runs of all tenants would share."
            remedy = "Compile the outer graph with a cache instead. Each run replaces it with a cache of the run."
            issues.append(GraphIssue(ERROR, "own-cache", location, why, remedy))
        if one.node and (within.interrupt_before_nodes or within.interrupt_after_nodes):
            why = (
                "Its subgraph uses breakpoints for debugging (interrupt_before or interrupt_after), which stop the run."
            )
            issues.append(GraphIssue(ERROR, "interrupt", location, why, "Call interrupt() in a node instead."))
    return issues


def _build_memory_store_issue(reached: ReachedValue) -> GraphIssue:
    why = "It contains an InMemoryStore. Its items exist in one worker only, and are lost when that worker crashes."
    return GraphIssue(
        WARNING, "own-store", f"node {reached.node!r}", why, "Use the store of the run: get_store(), or runtime.store."
    )


def _find_replaced_stores(graph: Graph, store: Any, location: str) -> list[GraphIssue]:
    """Return issues for stores of `compile(…)`, which a run replaces with the platform's store."""
    if not isinstance(store, InMemoryStore):
        return []
    issues: list[GraphIssue] = []
    if any(store.search((), limit=1)):
        why = "Its store contains items at compile time. The store that replaces it in a run does not contain them."
        issues.append(GraphIssue(WARNING, "own-store", location, why, "Add the items in a node."))
    if store.index_config and not getattr(graph.langgraph_adapter, "store_index", None):
        why = "Its store has an index for semantic search. The store that replaces it in a run has no index."
        issues.append(
            GraphIssue(WARNING, "own-store", location, why, "Pass the index: register_langgraph(…, store_index={…}).")
        )
    return issues
