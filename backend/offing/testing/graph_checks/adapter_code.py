"""Check of the code of a LangGraph graph for what fails, or is charged twice, on a worker."""

import ast
from collections.abc import Iterator
from typing import Any

from offing.langchain import OffingChatModel
from offing.testing.graph_checks.determinism import CLOCK, OUTSIDE, RANDOMNESS, iter_nondeterminism
from offing.testing.graph_checks.issue import ERROR, WARNING, GraphIssue
from offing.testing.graph_checks.reachable_values import ATOMIC_TYPES, GraphWalk, list_parts
from offing.testing.graph_checks.source_reader import SourceFunction, iter_own_nodes, last_assignments
from offing.testing.graph_checks.unawaited_calls import find_unawaited_calls

BLOCKING_METHODS = frozenset({"invoke", "stream", "batch"})
MODEL_METHODS = BLOCKING_METHODS | {f"a{name}" for name in BLOCKING_METHODS} | {"interrupt"}
CATCH_ALL = frozenset({"Exception", "BaseException"})
CONTROL_FLOW_EXCEPTIONS = frozenset({"GraphBubbleUp", "GraphInterrupt", "RunStopped"})

RERUN_EXPLANATIONS = {
    CLOCK: "when the node runs again after a crash, it makes a different model call, which is charged again",
    RANDOMNESS: "when the node runs again after a crash, it makes a different model call, which is charged again",
    OUTSIDE: "when the node runs again after a crash, its side effects happen again",
}

DURABLE_CALL_REMEDY = (
    "Move the call into a separate function with the @durable_call decorator, which records the result."
)

MAX_ISSUES = 500
"""Maximum number of values that are searched for a model."""


def find_adapter_code_issues(walk: GraphWalk) -> list[GraphIssue]:
    """Return the issues of the author's nodes and tools.

    Functions that they call in their package are included.
    """
    issues: list[GraphIssue] = []
    for source in walk.own_sources:
        issues += [*_find_unrecorded_calls(source), *_find_swallowed_exceptions(source), *find_unawaited_calls(source)]
    for source in walk.sources:
        issues += _find_blocking_model_calls(source)
    return issues


def _find_unrecorded_calls(source: SourceFunction) -> Iterator[GraphIssue]:
    for node, what, why in iter_nondeterminism(source):
        text = f"{what}, which depends on {why}: {RERUN_EXPLANATIONS.get(why, RERUN_EXPLANATIONS[RANDOMNESS])}."
        yield GraphIssue(WARNING, "unsafe-to-repeat", source.locate(node), text, DURABLE_CALL_REMEDY)


def _find_blocking_model_calls(source: SourceFunction) -> Iterator[GraphIssue]:
    """Yield issues for `model.invoke` in an async function.

    It would block the worker's event loop forever.
    """
    for function in ast.walk(source.tree):
        if not isinstance(function, ast.AsyncFunctionDef):
            continue
        called = [
            n.func for n in iter_own_nodes(function) if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute)
        ]
        for name in called:
            if name.attr in BLOCKING_METHODS and _contains_model(_resolve_root(name.value, function, source)):
                why = f"It calls `{name.attr}` in an async function. OffingChatModel rejects blocking calls there."
                remedy = f"Write `await ….a{name.attr}(…)`, or use a synchronous function."
                yield GraphIssue(ERROR, "blocked-loop", source.locate(name), why, remedy)


def _find_swallowed_exceptions(source: SourceFunction) -> Iterator[GraphIssue]:
    """Yield issues for exception handlers that swallow the end of a run or a wait for a person."""
    for node in ast.walk(source.tree):
        if (
            isinstance(node, ast.Try)
            and any(map(_is_suspending, node.body))
            and (handler := _find_catch_all(node)) is not None
        ):
            why = (
                "It catches every exception of a model call, including those that end a run at its limit or "
                "wait for a person."
            )
            remedy = "Add `except GraphBubbleUp: raise` (from langgraph.errors) before it."
            yield GraphIssue(WARNING, "swallowed-stop", source.locate(handler), why, remedy)


def _find_catch_all(try_node: ast.Try) -> ast.ExceptHandler | None:
    for handler in try_node.handlers:
        kinds = _list_exception_names(handler.type)
        raised = any(isinstance(node, ast.Raise) for node in ast.walk(handler))
        if kinds & CONTROL_FLOW_EXCEPTIONS and raised:
            return None
        if (handler.type is None or kinds & CATCH_ALL) and not raised:
            return handler
    return None


def _list_exception_names(kind: ast.expr | None) -> set[str]:
    nodes = ast.walk(kind) if kind is not None else ()
    return {name for node in nodes if (name := getattr(node, "attr", None) or getattr(node, "id", None))}


def _is_suspending(statement: ast.stmt) -> bool:
    calls = (node.func for node in ast.walk(statement) if isinstance(node, ast.Call))
    return any((getattr(called, "attr", None) or getattr(called, "id", None)) in MODEL_METHODS for called in calls)


def _resolve_root(node: ast.expr, function: ast.AsyncFunctionDef, source: SourceFunction) -> Any:
    """Return the value at the start of an expression: `model` in `model.bind_tools(tools)`.

    Names that were assigned such an expression before are resolved, too.
    """
    assignments = last_assignments(function)
    for _ in range(8):
        while isinstance(node, ast.Attribute | ast.Call):
            node = node.value if isinstance(node, ast.Attribute) else node.func
        if (assigned := assignments.get(getattr(node, "id", ""))) is None:
            break
        node = assigned
    return source.resolve(node)


def _contains_model(value: Any) -> bool:
    waiting, seen = [value], dict[int, Any]()
    while waiting and len(seen) < MAX_ISSUES:
        one = waiting.pop()
        if value is OffingChatModel or isinstance(one, OffingChatModel):
            return True
        if not isinstance(one, ATOMIC_TYPES) and id(one) not in seen:
            seen[id(one)] = one
            waiting += list_parts(one)
    return False
