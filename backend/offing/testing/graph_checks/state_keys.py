"""Check of a graph's state.

It finds keys that grow, loops without a turn counter, and keys that the initial state does not set.
"""

from collections.abc import Iterable
from typing import Any
from uuid import UUID

from offing.sdk import Graph, RunInfo
from offing.testing.graph_checks.issue import ERROR, WARNING, GraphIssue
from offing.testing.graph_checks.node_returns import find_written_keys

GROWING_TYPES = (list, tuple, str, set, dict)


def find_state_issues(graph: Graph) -> list[GraphIssue]:
    """Return the issues of a graph's state without running it."""
    built = graph.build()
    drawn: Any = built.compile().get_graph()
    looped = find_loop_nodes((edge.source, edge.target) for edge in drawn.edges)
    issues = [*(_find_growing_keys(built) if looped else ()), *_find_unset_keys(graph, built)]
    if looped and not graph.turn_counter:
        nodes = ", ".join(sorted(looped))
        why = f"Its loop ({nodes}) has no turn_counter, so a checkpoint is written at each superstep."
        issues.append(
            GraphIssue(WARNING, "turn-key", graph.name, why, "Set turn_counter to the state key that counts turns.")
        )
    return issues


def find_loop_nodes(edges: Iterable[tuple[str, str]]) -> set[str]:
    """Return the nodes from which a path leads back to themselves."""
    following: dict[str, set[str]] = {}
    for one, other in edges:
        following.setdefault(one, set()).add(other)
    return {node for node in following if node in _find_reachable(node, following)}


def _find_reachable(node: str, following: dict[str, set[str]]) -> set[str]:
    seen: set[str] = set()
    waiting = list(following.get(node, ()))
    while waiting:
        if (next_one := waiting.pop()) not in seen:
            seen.add(next_one)
            waiting += following.get(next_one, ())
    return seen


def _find_growing_keys(graph: Any) -> list[GraphIssue]:
    """Return issues for keys that each turn of a loop appends to instead of replacing them."""
    issues: list[GraphIssue] = []
    for name, channel in graph.channels.items():
        if getattr(channel, "operator", None) is None or not isinstance(getattr(channel, "value", None), GROWING_TYPES):
            continue
        why = (
            "A reducer appends to it, and each checkpoint contains all of it. The space grows with the "
            "square of its length."
        )
        remedy = "Record the content as a step, keep the seq of the step, and read the step where it is needed."
        issues.append(GraphIssue(ERROR, "growing-state", f"state key {name!r}", why, remedy))
    return issues


def _find_unset_keys(graph: Graph, built: Any) -> list[GraphIssue]:
    """Return issues for keys that the initial state does not set, so that an earlier run's value remains.

    Keys of the initial state that the graph does not have are issues, too.
    """
    run = RunInfo(UUID(int=0), "What is it?")
    try:
        initial_keys = set(graph.initial_state(run))
    except Exception as error:  # as above
        why = f"`initial_state` raises {type(error).__name__}: {error}."
        return [GraphIssue(ERROR, "start", graph.name, why, "Return the initial state.")]
    keys = list_state_keys(built)
    why = "`initial_state` does not set it, so a follow-up question starts with the value of the previous run."
    unset = [
        GraphIssue(ERROR, "start", f"state key {name!r}", why, "Set it in `initial_state`.")
        for name in keys - initial_keys
    ]
    why = f"`initial_state` sets it, but the state has no such key: {', '.join(sorted(keys))}."
    unknown = sorted(initial_keys - set(built.channels))
    return [
        *unset,
        *(GraphIssue(ERROR, "start", f"state key {n!r}", why, "Correct its name.") for n in unknown),
    ]


def list_state_keys(graph: Any) -> set[str]:
    """Return the keys that a graph keeps between supersteps.

    LangGraph creates a channel for each key in the input of a node. Keys that only a `Send` sets, and
    that no node returns, are not kept.
    """
    declared = {key for schema in (graph.state_schema, graph.input_schema) for key in graph.schemas.get(schema, {})}
    written = {key for spec in graph.nodes.values() for key in find_written_keys(spec.runnable)}
    return {key for key in graph.channels if not key.startswith(("__", "branch:")) and key in declared | written}
