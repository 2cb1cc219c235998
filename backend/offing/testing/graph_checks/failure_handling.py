"""Simulated runs under failures: nothing is found, a model or a tool fails, or no time is left.

A run must reach its end under each of them.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from offing.core.model import EngineFailure, FailureKind
from offing.core.run import Budget
from offing.sdk import Graph
from offing.testing.graph_checks.issue import ERROR, GraphIssue
from offing.testing.scenario import OutOfAnswersError, ScenarioOptions
from offing.testing.simulation import SimulatedRun, simulate_run

MAX_TURNS = 2


@dataclass(frozen=True, slots=True)
class _FailureCase:
    """One failure that a run may meet."""

    description: str
    options: ScenarioOptions
    remedy: str


async def find_failure_issues(
    graph: Graph, question: str, documents: dict[str, str], run: SimulatedRun
) -> list[GraphIssue]:
    """Return the issues of runs under failures.

    `run` is a simulated run without failures, which shows what can fail.
    """
    issues: list[GraphIssue] = []
    for trouble in _iter_failure_cases(graph, documents, run):
        try:
            await simulate_run(graph, question, **trouble.options)
        except (
            OutOfAnswersError,
            Exception,
        ) as error:  # the code of an author may raise any exception, and it is reported as an issue
            why = f"It ends with {type(error).__name__} ({error}) when {trouble.description}."
            issues.append(GraphIssue(ERROR, "failure", graph.name, why, trouble.remedy))
    return issues


def _iter_failure_cases(graph: Graph, documents: dict[str, str], run: SimulatedRun) -> Iterator[_FailureCase]:
    budget = Budget(max_turns=MAX_TURNS)
    remedy = "Deliver a report that states this."
    yield _FailureCase("nothing is found", {"documents": {}, "budget": budget}, remedy)
    yield _FailureCase("no turns are allowed", {"documents": documents, "budget": Budget(max_turns=0)}, remedy)
    role_names = {call.name for call in run.executed_calls}
    for role in (role.name for role in graph.roles if role.name in role_names):
        options: ScenarioOptions = {"documents": documents, "budget": budget, "answers": {role: _fail_role}}
        remedy = (
            "In this case `ctx.call_role` returns an EngineFailure. Check with isinstance before you read `output`."
        )
        yield _FailureCase(f"role {role!r} returns no answer", options, remedy)
    for tool in sorted({result.tool for result in run.tool_results}):
        options = {"documents": documents, "budget": budget, "failing_tools": {tool: "It does not answer."}}
        remedy = "A result that is not ok has no content. Read values with `content.get`."
        yield _FailureCase(f"tool {tool!r} fails", options, remedy)


def _fail_role(_: Any) -> EngineFailure:
    return EngineFailure(FailureKind.OVERLOADED, "The provider does not answer.")
