"""Check of the state keys that a node's code writes, as far as its source shows them."""

import ast
from collections.abc import Iterator
from typing import Any

from offing.testing.graph_checks.issue import ERROR, GraphIssue
from offing.testing.graph_checks.reachable_values import FRAMEWORK_PACKAGES, GraphWalk
from offing.testing.graph_checks.source_reader import SourceFunction, SourceReader, iter_own_nodes, resolve_name

COMMAND_CLASS = "langgraph.types.Command"


def find_return_issues(walk: GraphWalk) -> list[GraphIssue]:
    """Return issues for keys that a node returns and no state has. LangGraph ignores them silently."""
    issues: list[GraphIssue] = []
    for one in walk.graphs:
        builder = getattr(one.value, "builder", None)
        channels = {*getattr(builder, "channels", {}), *getattr(builder, "managed", {})}
        if builder is None or "__root__" in channels:
            continue
        for name, spec in builder.nodes.items():
            issues += _find_unknown_keys(
                name, SourceReader(list_functions(spec.runnable), follow_calls=False), channels
            )
    return issues


def find_written_keys(runnable: Any) -> set[str]:
    """Return the keys of the dictionaries that a node creates.

    Functions that it calls in its package are included. Dictionaries that are passed to calls are not.
    """
    return {key for source in SourceReader(list_functions(runnable)).sources for key in _iter_keys(source.tree, source)}


def list_functions(runnable: Any) -> list[Any]:
    """Return the functions of a node. Empty means that it is something else, such as a graph."""
    return [f for f in (getattr(runnable, "func", None), getattr(runnable, "afunc", None)) if f is not None]


def _find_unknown_keys(name: str, source_reader: SourceReader, channels: set[str]) -> Iterator[GraphIssue]:
    own = (
        source for source in source_reader.sources if source.package not in FRAMEWORK_PACKAGES and not source.installed
    )
    keys = sorted(key for key in channels if not key.startswith(("__", "branch:")))
    for source in own:
        for key in _iter_returned_keys(source):
            if key.value not in channels:
                why = f"Node {name!r} returns {key.value!r}, which is not a key of the state, so the value is dropped."
                remedy = f"Declare the key, or correct its name. The state has the keys {', '.join(keys)}."
                yield GraphIssue(ERROR, "unknown-key", source.locate(key), why, remedy)


def _iter_returned_keys(source: SourceFunction) -> Iterator[ast.Constant]:
    """Yield the keys of the dictionaries that a function itself returns."""
    function = next(iter(ast.iter_child_nodes(source.tree)), None)
    if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
        return
    for node in iter_own_nodes(function):
        if isinstance(node, ast.Return) and node.value is not None:
            yield from _iter_dict_keys(node.value, source)


def _iter_dict_keys(value: ast.expr, source: SourceFunction) -> Iterator[ast.Constant]:
    match value:
        case ast.Dict():
            yield from (key for key in value.keys if isinstance(key, ast.Constant) and isinstance(key.value, str))
        case ast.IfExp():
            yield from (*_iter_dict_keys(value.body, source), *_iter_dict_keys(value.orelse, source))
        case ast.BinOp():
            yield from (*_iter_dict_keys(value.left, source), *_iter_dict_keys(value.right, source))
        case ast.Call() if resolve_name(value.func, source) == COMMAND_CLASS and not _targets_parent(value):
            yield from (
                k for word in value.keywords if word.arg == "update" for k in _iter_dict_keys(word.value, source)
            )
        case _:
            return


def _targets_parent(command: ast.Call) -> bool:
    """Return whether the update is for the parent graph."""
    return any(word.arg == "graph" for word in command.keywords)


def _iter_keys(node: ast.AST, source: SourceFunction) -> Iterator[str]:
    if isinstance(node, ast.Call) and resolve_name(node.func, source) != COMMAND_CLASS:
        return
    if isinstance(node, ast.Dict):
        yield from (key.value for key in node.keys if isinstance(key, ast.Constant) and isinstance(key.value, str))
    for inner in ast.iter_child_nodes(node):
        yield from _iter_keys(inner, source)
