"""What the code of a graph written for LangGraph alone does that goes wrong, or is paid twice, on a worker."""

import ast
from collections.abc import Iterator
from typing import Any

from offing.langchain import OffingChatModel
from offing.testing.checking.awaiting import not_awaited
from offing.testing.checking.code import CHANCE, CLOCK, OUTSIDE, differing
from offing.testing.checking.finding import ERROR, WARNING, Finding
from offing.testing.checking.reading import Source, named_so, own_nodes
from offing.testing.checking.walking import PLAIN, Walk, parts

WAITING = frozenset({"invoke", "stream", "batch"})
ASKING = WAITING | {f"a{name}" for name in WAITING} | {"interrupt"}
CATCH_ALL = frozenset({"Exception", "BaseException"})
LET_THROUGH = frozenset({"GraphBubbleUp", "GraphInterrupt", "RunStopped"})

AGAIN = {
    CLOCK: "after a loss it runs again, asks something else, and that is paid anew",
    CHANCE: "after a loss it runs again, asks something else, and that is paid anew",
    OUTSIDE: "after a loss it runs again, and what it does outside is done again",
}

KEEP = "Put it into a function of its own, @journalled, whose result is on record."

ENOUGH = 500
"""Values that are looked through for a model behind a name."""


def faults_of_plain_code(walk: Walk) -> list[Finding]:
    """In the nodes and tools of the graph's author, and what they call in their package."""
    found: list[Finding] = []
    for source in walk.own_sources:
        found += [*_again(source), *_swallowed(source), *not_awaited(source)]
    for source in walk.sources:
        found += _blocked(source)
    return found


def _again(source: Source) -> Iterator[Finding]:
    for node, what, why in differing(source):
        text = f"{what}, which depends on {why}: {AGAIN.get(why, AGAIN[CHANCE])}."
        yield Finding(WARNING, "unsafe-to-repeat", source.place(node), text, KEEP)


def _blocked(source: Source) -> Iterator[Finding]:
    """`model.invoke` in an async function, which would wait for ever on the worker's event loop."""
    for function in ast.walk(source.tree):
        if not isinstance(function, ast.AsyncFunctionDef):
            continue
        called = [n.func for n in own_nodes(function) if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute)]
        for name in called:
            if name.attr in WAITING and _holds_model(_root(name.value, function, source)):
                why = f"It calls `{name.attr}` in an async function, where a model of ours refuses to wait."
                remedy = f"Write `await ….a{name.attr}(…)`, or make it a plain function."
                yield Finding(ERROR, "blocked-loop", source.place(name), why, remedy)


def _swallowed(source: Source) -> Iterator[Finding]:
    """A handler that takes what ends a run, or waits for a person, for an error."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Try) and any(map(_asks, node.body)) and (handler := _catches_all(node)) is not None:
            why = "It catches every exception of a model call, also what ends a run at its limit or waits for a person."
            remedy = "Put `except GraphBubbleUp: raise` before it (langgraph.errors)."
            yield Finding(WARNING, "swallowed-stop", source.place(handler), why, remedy)


def _catches_all(tried: ast.Try) -> ast.ExceptHandler | None:
    for handler in tried.handlers:
        kinds = _names(handler.type)
        raised = any(isinstance(node, ast.Raise) for node in ast.walk(handler))
        if kinds & LET_THROUGH and raised:
            return None
        if (handler.type is None or kinds & CATCH_ALL) and not raised:
            return handler
    return None


def _names(kind: ast.expr | None) -> set[str]:
    nodes = ast.walk(kind) if kind is not None else ()
    return {name for node in nodes if (name := getattr(node, "attr", None) or getattr(node, "id", None))}


def _asks(statement: ast.stmt) -> bool:
    calls = (node.func for node in ast.walk(statement) if isinstance(node, ast.Call))
    return any((getattr(called, "attr", None) or getattr(called, "id", None)) in ASKING for called in calls)


def _root(node: ast.expr, function: ast.AsyncFunctionDef, source: Source) -> Any:
    """What an expression begins with: `model` in `model.bind_tools(tools)`, also by a name given to that before."""
    given = named_so(function)
    for _ in range(8):
        while isinstance(node, ast.Attribute | ast.Call):
            node = node.value if isinstance(node, ast.Attribute) else node.func
        if (assigned := given.get(getattr(node, "id", ""))) is None:
            break
        node = assigned
    return source.value(node)


def _holds_model(value: Any) -> bool:
    waiting, seen = [value], dict[int, Any]()
    while waiting and len(seen) < ENOUGH:
        one = waiting.pop()
        if value is OffingChatModel or isinstance(one, OffingChatModel):
            return True
        if not isinstance(one, PLAIN) and id(one) not in seen:
            seen[id(one)] = one
            waiting += parts(one)
    return False
