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
            why = f"The graph within it is compiled with a {kind} of its own, whose content a lost worker takes along."
            remedy = "Compile it with checkpointer=True to keep its state for the run, or with none."
            issues.append(GraphIssue(ERROR, "own-checkpointer", location, why, remedy))
        if one.node and within.cache is not None:
            why = "The graph within it is compiled with a cache of its own, which runs of every tenant would share."
            remedy = "Compile the whole graph with a cache: each run has one of its own in its place."
            issues.append(GraphIssue(ERROR, "own-cache", location, why, remedy))
        if one.node and (within.interrupt_before_nodes or within.interrupt_after_nodes):
            why = "The graph within it stops for somebody at a debugger (interrupt_before or interrupt_after)."
            issues.append(GraphIssue(ERROR, "interrupt", location, why, "Call interrupt() in a node instead."))
    return issues


def _build_memory_store_issue(reached: ReachedValue) -> GraphIssue:
    why = "It holds an InMemoryStore: what is put there is lost with the worker, and no other worker has it."
    return GraphIssue(
        WARNING, "own-store", f"node {reached.node!r}", why, "Ask for the run's: get_store(), or runtime.store."
    )


def _find_replaced_stores(graph: Graph, store: Any, location: str) -> list[GraphIssue]:
    """Return issues for stores of `compile(…)`, which a run replaces with the platform's store."""
    if not isinstance(store, InMemoryStore):
        return []
    issues: list[GraphIssue] = []
    if any(store.search((), limit=1)):
        why = "What its store holds when it is compiled is not in the store that a run has in its place."
        issues.append(GraphIssue(WARNING, "own-store", location, why, "Put it there in a node."))
    if store.index_config and not getattr(graph.langgraph_adapter, "store_index", None):
        why = "Its store searches by meaning, and the one that a run has in its place does not."
        issues.append(
            GraphIssue(WARNING, "own-store", location, why, "Give the index: register_langgraph(…, store_index={…}).")
        )
    return issues
