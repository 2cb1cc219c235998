"""Whether a graph written for LangGraph alone is given what it takes, and has what its answer is read from."""

from inspect import getclosurevars
from typing import Any
from uuid import UUID

from offing.sdk import Graph, RunView
from offing.testing.checking.finding import ERROR, WARNING, Finding

RUN = RunView(UUID(int=0), "What is it?")


def faults_of_plain_start(graph: Graph, compiled: Any) -> list[Finding]:
    """What `plain_graph` was told beside the graph."""
    assert graph.plain is not None
    found: list[Finding] = []
    for name, make in (("start", graph.start), ("context", graph.plain.context)):
        try:
            given: Any = make(RUN) if make else None
        except Exception as error:  # an author's code may raise anything, and that is what is to be said
            why = f"`{name}` raises {type(error).__name__}: {error}."
            found.append(Finding(ERROR, "start", graph.name, why, f"Let `{name}` work for any question."))
            continue
        if name == "start" and isinstance(given, dict):
            found += _lost_question(graph, compiled, set(given))  # pyright: ignore[reportUnknownArgumentType]
    if getattr(compiled, "context_schema", None) is not None and graph.plain.context is None:
        why = f"It has a context_schema ({compiled.context_schema.__name__}), and is given no context."
        remedy = "Give it one: plain_graph(…, context=lambda run: …)."
        found.append(Finding(WARNING, "no-context", graph.name, why, remedy))
    return [*found, *_no_answer(graph, compiled)]


def _lost_question(graph: Graph, compiled: Any, given: set[str]) -> list[Finding]:
    """Keys that LangGraph would pass over in silence."""
    taken = _keys(compiled, "input_schema")
    if not taken or given <= taken:
        return []
    why = f"A run begins with {', '.join(sorted(given - taken))}, which its input does not have."
    remedy = f"Name one of its keys, question_key={min(taken)!r} for instance, or give `start`."
    return [Finding(ERROR, "start", graph.name, f"{why} It takes {', '.join(sorted(taken))}.", remedy)]


def _no_answer(graph: Graph, compiled: Any) -> list[Finding]:
    assert graph.plain is not None
    where: Any = getclosurevars(graph.plain.answer).nonlocals.get("where")
    given = _keys(compiled, "output_schema")
    if not isinstance(where, str) or not given or where in given:
        return []
    why = f"Its answer is read from {where!r}, which its output does not have. It has {', '.join(sorted(given))}."
    return [Finding(ERROR, "no-report", graph.name, why, "Name a key: plain_graph(…, answer=…).")]


def _keys(compiled: Any, schema: str) -> set[str]:
    """Empty: the graph has no keys, since its input is any value."""
    builder = getattr(compiled, "builder", None)
    return set(builder.schemas.get(getattr(builder, schema), {})) if builder is not None else set()
