"""Faults that show in a graph's shape: state that grows, loops without a turn, keys that a run does not begin with."""

from collections.abc import Iterable
from typing import Any
from uuid import UUID

from offing.sdk import Graph, RunView
from offing.testing.checking.finding import ERROR, WARNING, Finding
from offing.testing.checking.returning import keys_written

GROWING = (list, tuple, str, set, dict)


def faults_of_shape(graph: Graph) -> list[Finding]:
    """Without running it."""
    built = graph.build()
    drawn: Any = built.compile().get_graph()
    looped = loops((edge.source, edge.target) for edge in drawn.edges)
    found = [*(_growing(built) if looped else ()), *_not_begun(graph, built)]
    if looped and not graph.turn_key:
        nodes = ", ".join(sorted(looped))
        why = f"Its loop ({nodes}) has no turn_key, so that a checkpoint is written at each superstep."
        found.append(Finding(WARNING, "turn-key", graph.name, why, "Name the state key that counts turns."))
    return found


def loops(edges: Iterable[tuple[str, str]]) -> set[str]:
    """The nodes from which an edge's path leads back to themselves."""
    following: dict[str, set[str]] = {}
    for one, other in edges:
        following.setdefault(one, set()).add(other)
    return {node for node in following if node in _reached(node, following)}


def _reached(node: str, following: dict[str, set[str]]) -> set[str]:
    seen: set[str] = set()
    waiting = list(following.get(node, ()))
    while waiting:
        if (next_one := waiting.pop()) not in seen:
            seen.add(next_one)
            waiting += following.get(next_one, ())
    return seen


def _growing(built: Any) -> list[Finding]:
    """Keys that each turn of a loop adds to instead of replacing them."""
    found: list[Finding] = []
    for name, channel in built.channels.items():
        if getattr(channel, "operator", None) is None or not isinstance(getattr(channel, "value", None), GROWING):
            continue
        why = "It is added to and kept whole in each checkpoint, so that it costs the square of its length."
        remedy = "Record its content as a step and keep the step's seq; fetch it where it is needed."
        found.append(Finding(ERROR, "growing-state", f"state key {name!r}", why, remedy))
    return found


def _not_begun(graph: Graph, built: Any) -> list[Finding]:
    """Keys that an earlier run of the same thread would leave behind, and those that are none."""
    run = RunView(UUID(int=0), "What is it?")
    try:
        begun = set(graph.start(run))
    except Exception as error:  # as above
        why = f"`start` raises {type(error).__name__}: {error}."
        return [Finding(ERROR, "start", graph.name, why, "Let it return the first state.")]
    keys = state_keys(built)
    why = "`start` does not set it, so that a follow-up question begins with what the run before it left there."
    left = [Finding(ERROR, "start", f"state key {name!r}", why, "Set it in `start`.") for name in keys - begun]
    why = f"`start` sets it, and the graph's state has no such key: {', '.join(sorted(keys))}."
    unknown = sorted(begun - set(built.channels))
    return [*left, *(Finding(ERROR, "start", f"state key {n!r}", why, "Correct its name.") for n in unknown)]


def state_keys(built: Any) -> set[str]:
    """The keys that a graph keeps from one superstep to the next.

    LangGraph makes a channel of each key that some node is given. Those that only a `Send` brings, and that no node
    returns, hold nothing.
    """
    declared = {key for schema in (built.state_schema, built.input_schema) for key in built.schemas.get(schema, {})}
    written = {key for spec in built.nodes.values() for key in keys_written(spec.runnable)}
    return {key for key in built.channels if not key.startswith(("__", "branch:")) and key in declared | written}
