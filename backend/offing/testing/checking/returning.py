"""Which state keys a node's code writes, as far as its source shows it."""

import ast
from collections.abc import Iterator
from typing import Any

from offing.testing.checking.reading import Reading, Source, named


def keys_returned(runnable: Any) -> set[str]:
    """Keys of the dictionaries that a node, and what it calls in its package, make, but for those it hands to calls."""
    reading = Reading([getattr(runnable, "func", None), getattr(runnable, "afunc", None)])
    return {key for source in reading.sources for key in _keys(source.tree, source)}


def _keys(node: ast.AST, source: Source) -> Iterator[str]:
    if isinstance(node, ast.Call) and named(node.func, source) != "langgraph.types.Command":
        return
    if isinstance(node, ast.Dict):
        yield from (key.value for key in node.keys if isinstance(key, ast.Constant) and isinstance(key.value, str))
    for inner in ast.iter_child_nodes(node):
        yield from _keys(inner, source)
