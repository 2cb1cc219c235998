"""Faults of a graph that show before a run does: its shape, its code, what it is made of, and a rehearsal of it."""

from typing import Any

from offing.core.errors import InvalidInput
from offing.sdk import Graph
from offing.services.graphs import Catalogue
from offing.testing.checking.code import faults_of_code
from offing.testing.checking.compiling import faults_of_compiling
from offing.testing.checking.effects import faults_of_effects
from offing.testing.checking.finding import ERROR, WARNING, Finding
from offing.testing.checking.models import faults_of_models
from offing.testing.checking.plain_code import faults_of_plain_code
from offing.testing.checking.plain_start import faults_of_plain_start
from offing.testing.checking.returning import faults_of_returns
from offing.testing.checking.shape import faults_of_shape
from offing.testing.checking.state_types import faults_of_types
from offing.testing.checking.trial import faults_of_trial
from offing.testing.checking.upgrading import faults_of_upgrade
from offing.testing.checking.walking import Walk

__all__ = ["ERROR", "WARNING", "Finding", "check"]


async def check(graph: Graph) -> tuple[Finding, ...]:
    """What is wrong with a graph, errors first. A graph that cannot be built is not looked at further."""
    try:
        compiled: Any = graph.build().compile()
        compiled.get_graph()
    except Exception as error:  # an author's code may raise anything, and that is what is to be said
        return (_not_built(graph, error),)
    whole, walk = Catalogue([graph])[graph.name], Walk(compiled)
    found = [*faults_of_models(whole, walk), *faults_of_compiling(whole, walk), *faults_of_types(whole, walk)]
    found += [*faults_of_returns(walk), *faults_of_effects(whole, walk), *faults_of_upgrade(whole)]
    if whole.plain is not None:
        found += [*faults_of_plain_start(whole, compiled), *faults_of_plain_code(walk)]
    else:
        found += [*faults_of_shape(whole), *faults_of_code(whole), *await faults_of_trial(whole)]
    return tuple(sorted(dict.fromkeys(found), key=lambda f: (f.level != ERROR, f.rule, f.place)))


def _not_built(graph: Graph, error: Exception) -> Finding:
    if isinstance(error, InvalidInput):
        return Finding(ERROR, "build", graph.name, f"It cannot be built: {error.problem}.", error.remedy)
    why = f"It cannot be built: {type(error).__name__}: {error}."
    return Finding(ERROR, "build", graph.name, why, "Mend `build`.")
