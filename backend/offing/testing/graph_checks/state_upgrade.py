"""Check that a worker can call a graph's `upgrade_state`."""

from inspect import iscoroutinefunction, signature

from offing.sdk import Graph
from offing.testing.graph_checks.issue import ERROR, GraphIssue

REMEDY = "Declare it as def upgrade_state(version: str, state: dict) -> dict | None."


def find_upgrade_issues(graph: Graph) -> list[GraphIssue]:
    if graph.upgrade_state is None:
        return []
    if iscoroutinefunction(graph.upgrade_state):
        return [
            GraphIssue(
                ERROR, "upgrade", graph.name, "`upgrade_state` is async, but it is called without await.", REMEDY
            )
        ]
    try:
        signature(graph.upgrade_state).bind("version", {})
    except TypeError as error:
        why = f"`upgrade_state` cannot be called with a version and a state: {error}."
        return [GraphIssue(ERROR, "upgrade", graph.name, why, REMEDY)]
    return []
