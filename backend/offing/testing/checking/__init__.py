"""Faults of a graph that show before a run does: its shape, its code, and a rehearsal of it are looked at."""

from offing.sdk import Graph
from offing.services.graphs import Catalogue
from offing.testing.checking.code import faults_of_code
from offing.testing.checking.finding import ERROR, WARNING, Finding
from offing.testing.checking.shape import faults_of_shape
from offing.testing.checking.trial import faults_of_trial

__all__ = ["ERROR", "WARNING", "Finding", "check"]


NOT_FOR_PLAIN = frozenset({"growing-state", "no-limit", "no-rehearsal", "turn-key"})
"""What a graph that is written for LangGraph alone is not held to: each call of its models is a turn and stops at a
limit, and of its checkpoints only the latest is kept."""


async def check(graph: Graph) -> tuple[Finding, ...]:
    """What is wrong with a graph, errors first. A graph that cannot be built is not looked at further."""
    shape = faults_of_shape(graph)
    if any(finding.rule == "build" for finding in shape):
        return tuple(shape)
    whole = Catalogue([graph])[graph.name]
    found = [*shape, *faults_of_code(whole), *await faults_of_trial(whole)]
    if graph.plain is not None:
        found = [f for f in found if f.rule not in NOT_FOR_PLAIN and not _of_the_conversation(f)]
    return tuple(sorted(dict.fromkeys(found), key=lambda f: (f.level != ERROR, f.rule, f.place)))


def _of_the_conversation(finding: Finding) -> bool:
    """A key that the run before leaves to a follow-up question, which is how LangGraph remembers a conversation."""
    return finding.rule == "start" and finding.place.startswith("state key")
