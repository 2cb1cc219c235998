"""Rehearsals in which the world does not play along: nothing is found, a model or a tool fails, there is no time left.

A run must come to its end in each of them, because each of them happens.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from offing.core.model import EngineFailure, FailureKind
from offing.core.run import Budget
from offing.sdk import Graph
from offing.testing.checking.finding import ERROR, Finding
from offing.testing.given import Given
from offing.testing.rehearsal import Rehearsal, rehearse
from offing.testing.scene import OutOfAnswers

TURNS = 2


@dataclass(frozen=True, slots=True)
class _Trouble:
    """One way in which a run does not go as its author thought."""

    what: str
    given: Given
    remedy: str


async def faults_of_trouble(graph: Graph, question: str, documents: dict[str, str], run: Rehearsal) -> list[Finding]:
    """`run`: the rehearsal in which everything went well, which names what can fail."""
    found: list[Finding] = []
    for trouble in _troubles(graph, documents, run):
        try:
            await rehearse(graph, question, **trouble.given)
        except (
            OutOfAnswers,
            Exception,
        ) as error:  # an author's code may raise anything, and that is what is to be said
            why = f"It ends with {type(error).__name__} ({error}) when {trouble.what}."
            found.append(Finding(ERROR, "failure", graph.name, why, trouble.remedy))
    return found


def _troubles(graph: Graph, documents: dict[str, str], run: Rehearsal) -> Iterator[_Trouble]:
    budget = Budget(turns=TURNS)
    remedy = "Write a report that says so."
    yield _Trouble("nothing is found", {"documents": {}, "budget": budget}, remedy)
    yield _Trouble("it may not take a turn", {"documents": documents, "budget": Budget(turns=0)}, remedy)
    asked = {call.name for call in run.executed}
    for role in (role.name for role in graph.roles if role.name in asked):
        given: Given = {"documents": documents, "budget": budget, "answers": {role: _no_answer}}
        remedy = "`ctx.call` gives an EngineFailure then: ask with isinstance before its `output` is read."
        yield _Trouble(f"role {role!r} gives no answer", given, remedy)
    for tool in sorted({result.tool for result in run.tool_results}):
        given = {"documents": documents, "budget": budget, "failing_tools": {tool: "It does not answer."}}
        remedy = "A result that is not ok has no content: read it with `content.get`."
        yield _Trouble(f"tool {tool!r} fails", given, remedy)


def _no_answer(_: Any) -> EngineFailure:
    return EngineFailure(FailureKind.OVERLOADED, "The provider does not answer.")
