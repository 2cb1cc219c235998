"""Arguments of a planned call, fitted to the tool's JSON schema.

Properties are recognized by their names, so that the module depends on no particular tool.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from offing_graphs.extractive.arithmetic import find_expression
from offing_graphs.shared.schemas import Plan, RetrievedPassage, ToolCard

QUERY_NAMES = ("query", "q", "text", "search", "words")
EXPRESSION_NAMES = ("expression", "formula")
SOURCE_NAMES = ("source", "source_id", "document")
URL_NAMES = ("url",)
START_NAMES = ("start", "offset", "position")
LIMIT_NAMES = ("limit", "top_k")
LENGTH_NAMES = ("length", "size", "limit")
MAX_PASSAGES = 12
"""Number of passages that a search requests."""
WINDOW_CHARS = 3_000
"""Number of characters that are read around a passage."""
MAX_QUERY_CHARS = 400

_NAMED_ARGUMENT = re.compile(r"^(query|passage|url|expression):\s*(.+)$", re.MULTILINE | re.DOTALL)
_EVIDENCE_ID_PATTERN = re.compile(r"\bE\d+\b")


def build_arguments(plan: Plan, tool: ToolCard, evidence: Sequence[RetrievedPassage]) -> dict[str, Any]:
    """Build the arguments that the plan gives, under the property names of the tool.

    Values without a matching property are left out.
    """
    properties: Mapping[str, Any] = tool.parameters.get("properties", {})
    named = _NAMED_ARGUMENT.match(plan.context.strip())
    kind, value = (named.group(1), named.group(2).strip()) if named else ("", "")
    args: dict[str, Any] = {}
    if name := _find_property(EXPRESSION_NAMES, properties):
        args[name] = (
            value if kind == "expression" else find_expression(f"{plan.sub_goal} {plan.context}") or plan.context
        )
    elif name := _find_property(URL_NAMES, properties):
        args |= {name: value} if kind == "url" else {}
        if length := _find_property(LENGTH_NAMES, properties):
            args[length] = properties[length].get("maximum", WINDOW_CHARS)
    elif name := _find_property(SOURCE_NAMES, properties):
        args |= _build_range_arguments(name, properties, _find_named_passage(plan, evidence))
    elif name := _find_property(QUERY_NAMES, properties):
        args[name] = _truncate_query(value if kind == "query" else plan.sub_goal, properties[name])
        if limit := _find_property(LIMIT_NAMES, properties):
            args[limit] = min(MAX_PASSAGES, properties[limit].get("maximum", MAX_PASSAGES))
    return args


def _find_property(names: Sequence[str], properties: Mapping[str, Any]) -> str:
    return next((name for name in names if name in properties), "")


def _build_range_arguments(
    name: str, properties: Mapping[str, Any], passage: RetrievedPassage | None
) -> dict[str, Any]:
    """Return the range of a passage and the text after it.

    Returns an empty dictionary if the plan names no passage; the tool then rejects the call,
    and the rejection is recorded.
    """
    if passage is None:
        return {}
    args: dict[str, Any] = {name: passage.source}
    if start := _find_property(START_NAMES, properties):
        args[start] = passage.start
    if length := _find_property(LENGTH_NAMES, properties):
        max_length = properties[length].get("maximum", WINDOW_CHARS)
        args[length] = min(max(WINDOW_CHARS, passage.end - passage.start), max_length)
    return args


def _find_named_passage(plan: Plan, evidence: Sequence[RetrievedPassage]) -> RetrievedPassage | None:
    known = {piece.id: piece for piece in evidence}
    ids = [*_EVIDENCE_ID_PATTERN.findall(plan.context), *_EVIDENCE_ID_PATTERN.findall(plan.sub_goal)]
    return next((known[id] for id in ids if id in known), None)


def _truncate_query(query: str, schema: Mapping[str, Any]) -> str:
    return " ".join(query.split())[: min(int(schema.get("maxLength", MAX_QUERY_CHARS)), MAX_QUERY_CHARS)].strip()
