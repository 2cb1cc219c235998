"""Check whether a LangGraph graph accepts its input and has the key that its answer is read from."""

from inspect import getclosurevars
from typing import Any
from uuid import UUID

from offing.sdk import Graph, RunInfo
from offing.testing.graph_checks.issue import ERROR, WARNING, GraphIssue

SAMPLE_RUN = RunInfo(UUID(int=0), "What is it?")


def find_adapter_input_issues(graph: Graph, compiled: Any) -> list[GraphIssue]:
    """Return the issues of the arguments of `register_langgraph`."""
    assert graph.langgraph_adapter is not None
    issues: list[GraphIssue] = []
    for name, make in (("initial_state", graph.initial_state), ("context", graph.langgraph_adapter.context)):
        try:
            initial_state: Any = make(SAMPLE_RUN) if make else None
        except Exception as error:  # the code of an author may raise any exception, and it is reported as an issue
            why = f"`{name}` raises {type(error).__name__}: {error}."
            issues.append(GraphIssue(ERROR, "start", graph.name, why, f"Make `{name}` work for any question."))
            continue
        if name == "initial_state" and isinstance(initial_state, dict):
            issues += _find_dropped_keys(graph, compiled, set(initial_state))  # pyright: ignore[reportUnknownArgumentType]
    if getattr(compiled, "context_schema", None) is not None and graph.langgraph_adapter.context is None:
        why = f"It has a context_schema ({compiled.context_schema.__name__}), but no context is passed."
        remedy = "Pass one: register_langgraph(…, context=lambda run: …)."
        issues.append(GraphIssue(WARNING, "no-context", graph.name, why, remedy))
    return [*issues, *_find_missing_answer(graph, compiled)]


def _find_dropped_keys(graph: Graph, compiled: Any, inputs: set[str]) -> list[GraphIssue]:
    """Return issues for input keys that LangGraph would ignore silently."""
    input_keys = _list_keys(compiled, "input_schema")
    if not input_keys or inputs <= input_keys:
        return []
    why = f"The initial state has keys that the input schema does not have: {', '.join(sorted(inputs - input_keys))}."
    remedy = f"Use one of these keys, for example question_key={min(input_keys)!r}, or pass `initial_state`."
    return [
        GraphIssue(
            ERROR, "start", graph.name, f"{why} The input schema has the keys {', '.join(sorted(input_keys))}.", remedy
        )
    ]


def _find_missing_answer(graph: Graph, compiled: Any) -> list[GraphIssue]:
    assert graph.langgraph_adapter is not None
    where: Any = getclosurevars(graph.langgraph_adapter.build_report).nonlocals.get("where")
    output_keys = _list_keys(compiled, "output_schema")
    if not isinstance(where, str) or not output_keys or where in output_keys:
        return []
    why = (
        f"The answer is read from {where!r}, which the output schema does not have. It has the keys "
        f"{', '.join(sorted(output_keys))}."
    )
    return [GraphIssue(ERROR, "no-report", graph.name, why, "Choose one of them: register_langgraph(…, answer=…).")]


def _list_keys(compiled: Any, schema: str) -> set[str]:
    """Return the keys of a schema. Empty means that the graph's input is any value."""
    builder = getattr(compiled, "builder", None)
    return set(builder.schemas.get(getattr(builder, schema), {})) if builder is not None else set()
