"""Which state keys a node's code writes, as far as its source shows it."""

import ast
from collections.abc import Iterator
from typing import Any

from offing.testing.checking.finding import ERROR, Finding
from offing.testing.checking.reading import Reading, Source, named, own_nodes
from offing.testing.checking.walking import FRAMEWORKS, Walk

COMMAND = "langgraph.types.Command"


def faults_of_returns(walk: Walk) -> list[Finding]:
    """Keys that a node returns and no state has: LangGraph leaves them out without a word."""
    found: list[Finding] = []
    for one in walk.graphs:
        builder = getattr(one.value, "builder", None)
        known = {*getattr(builder, "channels", {}), *getattr(builder, "managed", {})}
        if builder is None or "__root__" in known:
            continue
        for name, spec in builder.nodes.items():
            found += _unknown(name, Reading(functions_of(spec.runnable), deep=False), known)
    return found


def keys_written(runnable: Any) -> set[str]:
    """Keys of the dictionaries that a node, and what it calls in its package, make, but for those it hands to calls."""
    return {key for source in Reading(functions_of(runnable)).sources for key in _keys(source.tree, source)}


def functions_of(runnable: Any) -> list[Any]:
    """The functions of a node. Empty: it is something else, such as a graph."""
    return [f for f in (getattr(runnable, "func", None), getattr(runnable, "afunc", None)) if f is not None]


def _unknown(name: str, reading: Reading, known: set[str]) -> Iterator[Finding]:
    own = (source for source in reading.sources if source.package not in FRAMEWORKS and not source.installed)
    keys = sorted(key for key in known if not key.startswith(("__", "branch:")))
    for source in own:
        for key in _returned(source):
            if key.value not in known:
                why = f"Node {name!r} returns {key.value!r}, which the state does not have, so that it is left out."
                remedy = f"Declare it, or correct it: the state has {', '.join(keys)}."
                yield Finding(ERROR, "unknown-key", source.place(key), why, remedy)


def _returned(source: Source) -> Iterator[ast.Constant]:
    """The keys of the dictionaries that a function itself returns."""
    function = next(iter(ast.iter_child_nodes(source.tree)), None)
    if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
        return
    for node in own_nodes(function):
        if isinstance(node, ast.Return) and node.value is not None:
            yield from _keys_of(node.value, source)


def _keys_of(value: ast.expr, source: Source) -> Iterator[ast.Constant]:
    match value:
        case ast.Dict():
            yield from (key for key in value.keys if isinstance(key, ast.Constant) and isinstance(key.value, str))
        case ast.IfExp():
            yield from (*_keys_of(value.body, source), *_keys_of(value.orelse, source))
        case ast.BinOp():
            yield from (*_keys_of(value.left, source), *_keys_of(value.right, source))
        case ast.Call() if named(value.func, source) == COMMAND and not _for_another(value):
            yield from (k for word in value.keywords if word.arg == "update" for k in _keys_of(word.value, source))
        case _:
            return


def _for_another(command: ast.Call) -> bool:
    """Whether the update is the graph's around this one."""
    return any(word.arg == "graph" for word in command.keywords)


def _keys(node: ast.AST, source: Source) -> Iterator[str]:
    if isinstance(node, ast.Call) and named(node.func, source) != COMMAND:
        return
    if isinstance(node, ast.Dict):
        yield from (key.value for key in node.keys if isinstance(key, ast.Constant) and isinstance(key.value, str))
    for inner in ast.iter_child_nodes(node):
        yield from _keys(inner, source)
