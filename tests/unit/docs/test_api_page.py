"""docs/api.md lists every route of the contract and no other, and names only what the contract has."""

import json
import re
from collections.abc import Iterator
from typing import Any, cast

from tests.unit.docs.documents import ROOT

_ROUTE = re.compile(r"`(GET|POST|PATCH|PUT|DELETE) (/[\w/{}.-]*)`")

_BODY_FIELD = re.compile(r'[{,]\s*"(\w+)"\s*:')

_WORD = re.compile(r"`([a-z_]+)(?:=\w+)?`")

CONTRACT: dict[str, Any] = json.loads((ROOT / "frontend/openapi.json").read_text(encoding="utf-8"))


def _rows() -> list[str]:
    lines = (ROOT / "docs/api.md").read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line.startswith("|") and _ROUTE.search(line)]


def _names(node: Any, seen: frozenset[str] = frozenset()) -> Iterator[str]:
    """The fields, parameters and constants of a part of the contract."""
    if isinstance(node, list):
        for item in cast("list[Any]", node):
            yield from _names(item, seen)
    if not isinstance(node, dict):
        return
    entries = cast("dict[str, Any]", node)
    if (reference := entries.get("$ref")) is not None and reference not in seen:
        yield from _names(CONTRACT["components"]["schemas"][reference.rpartition("/")[2]], seen | {reference})
    yield from entries.get("properties", ())
    yield from (value for value in (*entries.get("enum", ()), entries.get("const")) if isinstance(value, str))
    if "in" in entries:
        yield entries["name"]
    for value in entries.values():
        yield from _names(value, seen)


def test_the_page_lists_exactly_the_routes_of_the_contract() -> None:
    routes = {(method.upper(), path) for path, methods in CONTRACT["paths"].items() for method in methods}
    assert {route for line in _rows() for route in _ROUTE.findall(line)} == routes


def test_the_page_names_only_parameters_and_fields_of_the_contract() -> None:
    unknown: list[tuple[str, str]] = []
    for line in _rows():
        (method, path), *_ = _ROUTE.findall(line)
        description = line.partition("` |")[2]
        operation = CONTRACT["paths"][path][method.lower()]
        named = {*_BODY_FIELD.findall(description), *_WORD.findall(description)}
        unknown += [(f"{method} {path}", name) for name in sorted(named - {*_names(operation)})]
    assert unknown == []
