"""What an author compiled into a graph, or into one within it, that does not do here what it does elsewhere."""

from typing import Any

from langgraph.store.memory import InMemoryStore

from offing.sdk import Graph
from offing.testing.checking.finding import ERROR, WARNING, Finding
from offing.testing.checking.walking import Reached, Walk


def faults_of_compiling(graph: Graph, walk: Walk) -> list[Finding]:
    """Stores, caches, savers and stops for a debugger that came with `compile(…)`, and stores that its code holds."""
    found = [_held(one) for one in walk.values if isinstance(one.value, InMemoryStore)]
    for one in walk.graphs:
        within, place = one.value, f"node {one.node!r}" if one.node else graph.name
        found += _replaced(graph, within.store, place)
        if one.node and not isinstance(within.checkpointer, bool | None):
            kind = type(within.checkpointer).__name__
            why = f"The graph within it is compiled with a {kind} of its own, whose content a lost worker takes along."
            remedy = "Compile it with checkpointer=True to keep its state for the run, or with none."
            found.append(Finding(ERROR, "own-checkpointer", place, why, remedy))
        if one.node and within.cache is not None:
            why = "The graph within it is compiled with a cache of its own, which runs of every tenant would share."
            remedy = "Compile the whole graph with a cache: each run has one of its own in its place."
            found.append(Finding(ERROR, "own-cache", place, why, remedy))
        if one.node and (within.interrupt_before_nodes or within.interrupt_after_nodes):
            why = "The graph within it stops for somebody at a debugger (interrupt_before or interrupt_after)."
            found.append(Finding(ERROR, "interrupt", place, why, "Call interrupt() in a node instead."))
    return found


def _held(one: Reached) -> Finding:
    why = "It holds an InMemoryStore: what is put there is lost with the worker, and no other worker has it."
    return Finding(WARNING, "own-store", f"node {one.node!r}", why, "Ask for the run's: get_store(), or runtime.store.")


def _replaced(graph: Graph, store: Any, place: str) -> list[Finding]:
    """A run has the platform's store in the place of one that came with `compile(…)`."""
    if not isinstance(store, InMemoryStore):
        return []
    found: list[Finding] = []
    if any(store.search((), limit=1)):
        why = "What its store holds when it is compiled is not in the store that a run has in its place."
        found.append(Finding(WARNING, "own-store", place, why, "Put it there in a node."))
    if store.index_config and not getattr(graph.plain, "store_index", None):
        why = "Its store searches by meaning, and the one that a run has in its place does not."
        found.append(Finding(WARNING, "own-store", place, why, "Give the index: plain_graph(…, store_index={…})."))
    return found
