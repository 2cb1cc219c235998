"""Coroutines that are made and left, so that what they say is never done."""

import ast
from collections.abc import Iterator
from inspect import iscoroutinefunction

from offing.sdk import RunContext
from offing.testing.checking.finding import ERROR, Finding
from offing.testing.checking.reading import Source, named_so

AWAITED = frozenset(name for name, value in vars(RunContext).items() if iscoroutinefunction(value))
"""What a run's context does when it is awaited."""

TAKEN = (ast.Await, ast.Call, ast.Starred, ast.Lambda, ast.GeneratorExp, ast.ListComp, ast.SetComp, ast.DictComp)
"""Within these somebody else may await it, as `gather` does."""

KEPT = (ast.Assign, ast.AnnAssign, ast.NamedExpr, ast.Return, ast.Yield, ast.IfExp)
"""Directly within these it may be awaited later."""


def not_awaited(source: Source) -> Iterator[Finding]:
    """Calls of async functions that nothing awaits."""
    for call in _left(source.tree, source):
        why = f"It calls {_coroutine(call.func, source)} without awaiting it, so that nothing happens."
        yield Finding(ERROR, "not-awaited", source.place(call), why, "Write `await` before it.")


def _left(node: ast.AST, source: Source, taken: bool = False) -> Iterator[ast.Call]:
    for inner in ast.iter_child_nodes(node):
        if isinstance(inner, ast.stmt):
            yield from _left(inner, source)
            continue
        left = not taken and not isinstance(node, (*TAKEN, *KEPT))
        if left and isinstance(inner, ast.Call) and _coroutine(inner.func, source):
            yield inner
        yield from _left(inner, source, taken or isinstance(inner, TAKEN))


def _coroutine(called: ast.expr, source: Source) -> str:
    """The name of an async function that is called. Empty: it is none, as far as can be told."""
    if iscoroutinefunction(source.value(called)):
        return getattr(called, "attr", "") or getattr(called, "id", "")
    if not isinstance(called, ast.Attribute):
        return ""
    of_context = called.attr in AWAITED and _is_context(called.value, source)
    return called.attr if of_context or called.attr == "ainvoke" else ""


def _is_context(node: ast.expr, source: Source) -> bool:
    """Whether it is `runtime.context`, or a name for that."""
    node = named_so(source.tree).get(getattr(node, "id", "")) or node
    return getattr(node, "attr", getattr(node, "id", "")) in ("context", "ctx")
