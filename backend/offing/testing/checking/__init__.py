"""Faults of a graph that show before a run does: its shape, its code, and a rehearsal of it are looked at."""

from offing.sdk import Graph
from offing.services.graphs import Catalogue
from offing.testing.checking.code import faults_of_code
from offing.testing.checking.finding import ERROR, WARNING, Finding
from offing.testing.checking.shape import faults_of_shape
from offing.testing.checking.trial import faults_of_trial

__all__ = ["ERROR", "WARNING", "Finding", "check"]


async def check(graph: Graph) -> tuple[Finding, ...]:
    """What is wrong with a graph, errors first. A graph that cannot be built is not looked at further."""
    shape = faults_of_shape(graph)
    if any(finding.rule == "build" for finding in shape):
        return tuple(shape)
    whole = Catalogue([graph])[graph.name]
    found = [*shape, *faults_of_code(whole), *await faults_of_trial(whole)]
    return tuple(sorted(dict.fromkeys(found), key=lambda f: (f.level != ERROR, f.rule, f.place)))
