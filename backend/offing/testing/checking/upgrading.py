"""Whether a graph's `upgrade` can be called as a worker calls it."""

from inspect import iscoroutinefunction, signature

from offing.sdk import Graph
from offing.testing.checking.finding import ERROR, Finding

REMEDY = "Declare it as def upgrade(version: str, state: dict) -> dict | None."


def faults_of_upgrade(graph: Graph) -> list[Finding]:
    if graph.upgrade is None:
        return []
    if iscoroutinefunction(graph.upgrade):
        return [Finding(ERROR, "upgrade", graph.name, "`upgrade` is async, and nobody awaits it.", REMEDY)]
    try:
        signature(graph.upgrade).bind("version", {})
    except TypeError as error:
        why = f"`upgrade` cannot be called with a version and a state: {error}."
        return [Finding(ERROR, "upgrade", graph.name, why, REMEDY)]
    return []
