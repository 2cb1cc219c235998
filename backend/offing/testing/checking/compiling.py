"""What an author compiled into a graph, or into one within it, that does not do here what it does elsewhere."""

from typing import Any

from langgraph.store.memory import InMemoryStore

from offing.testing.checking.finding import ERROR, WARNING, Finding
from offing.testing.checking.walking import Walk


def faults_of_compiling(name: str, walk: Walk) -> list[Finding]:
    """Stores, savers and stops for a debugger that came with `compile(…)`."""
    found: list[Finding] = []
    for one in walk.graphs:
        graph, place = one.value, f"node {one.node!r}" if one.node else name
        found += _store(graph.store, place)
        if one.node and not isinstance(graph.checkpointer, bool | None):
            kind = type(graph.checkpointer).__name__
            why = f"The graph within it is compiled with a {kind} of its own, whose content a lost worker takes along."
            remedy = "Compile it with checkpointer=True to keep its state for the run, or with none."
            found.append(Finding(ERROR, "own-checkpointer", place, why, remedy))
        if one.node and (graph.interrupt_before_nodes or graph.interrupt_after_nodes):
            why = "The graph within it stops for somebody at a debugger (interrupt_before or interrupt_after)."
            found.append(Finding(ERROR, "interrupt", place, why, "Call interrupt() in a node instead."))
    return found


def _store(store: Any, place: str) -> list[Finding]:
    if not isinstance(store, InMemoryStore):
        return []
    why = "It is compiled with an InMemoryStore: what is put there is lost with the worker, and no other worker has it."
    return [Finding(WARNING, "own-store", place, why, "Leave `store=` out.")]
