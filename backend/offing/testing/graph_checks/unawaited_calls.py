"""Check for coroutines that are never awaited, so that they never run."""

import ast
from collections.abc import Iterator
from inspect import iscoroutinefunction

from offing.sdk import RunContext
from offing.testing.graph_checks.issue import ERROR, GraphIssue
from offing.testing.graph_checks.source_reader import SourceFunction, last_assignments

ASYNC_METHODS = frozenset(name for name, value in vars(RunContext).items() if iscoroutinefunction(value))
"""Async methods of the run context."""

CONSUMING_NODES = (
    ast.Await,
    ast.Call,
    ast.Starred,
    ast.Lambda,
    ast.GeneratorExp,
    ast.ListComp,
    ast.SetComp,
    ast.DictComp,
)
"""Syntax nodes within which other code may await a coroutine, as `gather` does."""

STORING_NODES = (ast.Assign, ast.AnnAssign, ast.NamedExpr, ast.Return, ast.Yield, ast.IfExp)
"""Syntax nodes directly within which a coroutine may be awaited later."""


def find_unawaited_calls(source: SourceFunction) -> Iterator[GraphIssue]:
    """Yield issues for calls of async functions that nothing awaits."""
    for call in _iter_unconsumed_calls(source.tree, source):
        why = f"It calls {_find_coroutine_name(call.func, source)} without awaiting it, so the call has no effect."
        yield GraphIssue(ERROR, "not-awaited", source.locate(call), why, "Write `await` before it.")


def _iter_unconsumed_calls(node: ast.AST, source: SourceFunction, is_consumed: bool = False) -> Iterator[ast.Call]:
    for inner in ast.iter_child_nodes(node):
        if isinstance(inner, ast.stmt):
            yield from _iter_unconsumed_calls(inner, source)
            continue
        is_unconsumed = not is_consumed and not isinstance(node, (*CONSUMING_NODES, *STORING_NODES))
        if is_unconsumed and isinstance(inner, ast.Call) and _find_coroutine_name(inner.func, source):
            yield inner
        yield from _iter_unconsumed_calls(inner, source, is_consumed or isinstance(inner, CONSUMING_NODES))


def _find_coroutine_name(call: ast.expr, source: SourceFunction) -> str:
    """Return the name of the async function that is called. Empty means that none is recognized."""
    if iscoroutinefunction(source.resolve(call)):
        return getattr(call, "attr", "") or getattr(call, "id", "")
    if not isinstance(call, ast.Attribute):
        return ""
    of_context = call.attr in ASYNC_METHODS and _is_run_context(call.value, source)
    return call.attr if of_context or call.attr == "ainvoke" else ""


def _is_run_context(node: ast.expr, source: SourceFunction) -> bool:
    """Return whether an expression is `runtime.context` or a name assigned from it."""
    node = last_assignments(source.tree).get(getattr(node, "id", "")) or node
    return getattr(node, "attr", getattr(node, "id", "")) in ("context", "ctx")
