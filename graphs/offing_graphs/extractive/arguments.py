"""Arguments for a planned call, fitted to the tool's JSON schema. Knows property names, no tool."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from offing_graphs.extractive.sums import expression
from offing_graphs.parts.shapes import Card, Piece, Plan

QUERY = ("query", "q", "text", "search", "words")
SUM = ("expression", "formula")
SOURCE = ("source", "source_id", "document")
ADDRESS = ("url",)
FROM = ("start", "offset", "position")
LIMIT = ("limit", "top_k")
LENGTH = ("length", "size", "limit")
PASSAGES = 12
"""Passages that a search is asked for."""
WINDOW = 3_000
"""Code points that are read around a passage."""
LONGEST_QUERY = 400

_NAMED = re.compile(r"^(query|passage|url|expression):\s*(.+)$", re.MULTILINE | re.DOTALL)
_ID = re.compile(r"\bE\d+\b")


def arguments(plan: Plan, tool: Card, evidence: Sequence[Piece]) -> dict[str, Any]:
    """What the plan says, under the names that the tool has. What has no place is left out."""
    properties: Mapping[str, Any] = tool.parameters.get("properties", {})
    named = _NAMED.match(plan.context.strip())
    kind, said = (named.group(1), named.group(2).strip()) if named else ("", "")
    found: dict[str, Any] = {}
    if name := _first(SUM, properties):
        found[name] = said if kind == "expression" else expression(f"{plan.sub_goal} {plan.context}") or plan.context
    elif name := _first(ADDRESS, properties):
        found |= {name: said} if kind == "url" else {}
        if length := _first(LENGTH, properties):
            found[length] = properties[length].get("maximum", WINDOW)
    elif name := _first(SOURCE, properties):
        found |= _place(name, properties, _piece(plan, evidence))
    elif name := _first(QUERY, properties):
        found[name] = _fitting(said if kind == "query" else plan.sub_goal, properties[name])
        if limit := _first(LIMIT, properties):
            found[limit] = min(PASSAGES, properties[limit].get("maximum", PASSAGES))
    return found


def _first(names: Sequence[str], properties: Mapping[str, Any]) -> str:
    return next((name for name in names if name in properties), "")


def _place(name: str, properties: Mapping[str, Any], piece: Piece | None) -> dict[str, Any]:
    """The passage and what follows it. Empty: no passage was named; the tool's refusal goes on record."""
    if piece is None:
        return {}
    found: dict[str, Any] = {name: piece.source}
    if start := _first(FROM, properties):
        found[start] = piece.start
    if length := _first(LENGTH, properties):
        most = properties[length].get("maximum", WINDOW)
        found[length] = min(max(WINDOW, piece.end - piece.start), most)
    return found


def _piece(plan: Plan, evidence: Sequence[Piece]) -> Piece | None:
    known = {piece.id: piece for piece in evidence}
    ids = [*_ID.findall(plan.context), *_ID.findall(plan.sub_goal)]
    return next((known[id] for id in ids if id in known), None)


def _fitting(query: str, schema: Mapping[str, Any]) -> str:
    return " ".join(query.split())[: min(int(schema.get("maxLength", LONGEST_QUERY)), LONGEST_QUERY)].strip()
