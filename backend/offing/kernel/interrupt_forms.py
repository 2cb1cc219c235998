"""Recognize the interrupts of common packages by their value, and return the form of their response.

Known are langchain's HumanInTheLoopMiddleware in both of its modes, LangGraph's `HumanInterrupt`, langchain's MCP
elicitation, and any `interrupt` that has a response schema. Any other interrupt has no form.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

from offing.core.json_schema import as_mapping, as_sequence, resolve
from offing.core.response_form import (
    MAX_ARGS_CHARS,
    MAX_FORM_CHARS,
    MAX_REVIEWS,
    MAX_SCHEMA_CHARS,
    DecisionType,
    ResponseForm,
    ResponseShape,
    ToolReview,
)

MAX_NAME_CHARS = 200
MAX_DESCRIPTION_CHARS = 4_000
MAX_DEPTH = 20

_CONFIG = {
    "allow_accept": DecisionType.APPROVE,
    "allow_edit": DecisionType.EDIT,
    "allow_respond": DecisionType.RESPOND,
    "allow_ignore": DecisionType.IGNORE,
}


def form_of(value: Any, schema: Any) -> ResponseForm | None:
    """Return the form of the response to an interrupt. `None` means free text.

    `schema` is the interrupt's `response_schema`, which LangGraph hands out as JSON schema.
    """
    found = _limited_schema(schema)
    mapping = as_mapping(value)
    if "action_requests" in mapping:
        return _reviewed(ResponseShape.DECISIONS, _batched(mapping), found)
    if mapping.get("type") == "tool_approval" and isinstance(schema, Mapping):
        decisions = _decisions_of(cast(Mapping[str, Any], schema))
        return _reviewed(ResponseShape.DECISION, [_review(mapping, "name", mapping, decisions)], found)
    if requests := _human_interrupts(value):
        return _reviewed(ResponseShape.RESPONSES, [_human_review(one) for one in requests], found)
    if mapping.get("type") == "mcp_elicitation":
        found = _limited_schema(_elicitation_schema(as_sequence(mapping.get("requests"))))
    return None if found is None else ResponseForm(ResponseShape.VALUE, schema=found)


def _reviewed(
    shape: ResponseShape, reviews: Sequence[ToolReview | None], schema: Mapping[str, Any] | None
) -> ResponseForm | None:
    """`None` where a call cannot be decided about: no response to such a form could be right."""
    known = [review for review in reviews if review is not None]
    if not known or len(known) < len(reviews) or len(known) > MAX_REVIEWS:
        return None
    return ResponseForm(shape, tuple(_limited(known)), schema)


def _batched(value: Mapping[str, Any]) -> list[ToolReview | None]:
    configs = [as_mapping(one) for one in as_sequence(value.get("review_configs"))]
    found: list[ToolReview | None] = []
    for at, one in enumerate(as_sequence(value.get("action_requests"))):
        request = as_mapping(one)
        # The middleware has a configuration for each request; other authors one for each tool.
        named = [
            config for config in configs[at : at + 1] + configs if config.get("action_name") == request.get("name")
        ]
        allowed = as_sequence(named[0].get("allowed_decisions")) if named else ()
        found.append(_review(request, "name", request, [one for one in DecisionType if one in allowed]))
    return found


def _decisions_of(schema: Mapping[str, Any]) -> list[DecisionType]:
    """The types of the decisions that a schema of one decision allows."""
    options = as_sequence(schema.get("oneOf")) or as_sequence(schema.get("anyOf")) or [schema]
    wholes = [as_mapping(resolve(schema, one["$ref"]) if "$ref" in as_mapping(one) else one) for one in options]
    names = [as_mapping(as_mapping(one.get("properties")).get("type")).get("const") for one in wholes]
    return [one for one in DecisionType if one in names]


def _human_interrupts(value: Any) -> Sequence[Mapping[str, Any]]:
    """A list of LangGraph's `HumanInterrupt`, or a single one. Both are answered with a list."""
    items: Sequence[Any] = [value] if isinstance(value, Mapping) else as_sequence(value)
    found = [as_mapping(one) for one in items]
    return found if all("action_request" in one and "config" in one for one in found) else ()


def _human_review(value: Mapping[str, Any]) -> ToolReview | None:
    config = as_mapping(value.get("config"))
    allowed = [decision for name, decision in _CONFIG.items() if config.get(name) is True]
    return _review(as_mapping(value.get("action_request")), "action", value, allowed)


def _review(
    request: Mapping[str, Any], name: str, described: Mapping[str, Any], allowed: Sequence[DecisionType]
) -> ToolReview | None:
    tool, args, words = request.get(name), request.get("args"), described.get("description")
    if not isinstance(tool, str) or not tool.strip() or not isinstance(args, Mapping) or not allowed:
        return None
    # What langchain writes where its user gives no description repeats the call.
    told = words.removesuffix(f"\n\nTool: {tool}\nArgs: {args}") if isinstance(words, str) else ""
    shown = cast(Mapping[str, Any], _plain(args))
    return ToolReview(_text(tool, MAX_NAME_CHARS), shown, _text(told, MAX_DESCRIPTION_CHARS), tuple(allowed))


def _limited(reviews: Sequence[ToolReview]) -> list[ToolReview]:
    left, found = MAX_FORM_CHARS, list[ToolReview]()
    for review in reviews:
        size = len(json.dumps(review.args))
        fits = size <= min(left, MAX_ARGS_CHARS)
        left -= size if fits else 0
        found.append(review if fits else ToolReview(review.name, None, review.description, review.decisions))
    return found


def _limited_schema(schema: Any) -> Mapping[str, Any] | None:
    if not isinstance(schema, Mapping):
        return None
    found = cast(Mapping[str, Any], _plain(schema))
    return found if len(json.dumps(found)) <= MAX_SCHEMA_CHARS else None


def _elicitation_schema(requests: Sequence[Any]) -> dict[str, Any] | None:
    """What langchain reads in response to the questions of an MCP server: an answer for each, under its key."""
    named = {str(one.get("key")): _elicited(one) for one in map(as_mapping, requests)}
    answers = {"type": "object", "properties": named, "required": list(named), "additionalProperties": False}
    return {"type": "object", "properties": {"responses": answers}, "required": ["responses"]} if named else None


def _elicited(request: Mapping[str, Any]) -> dict[str, Any]:
    content = request.get("requested_schema") if request.get("mode") == "form" else None
    accept: dict[str, Any] = {"action": {"const": "accept"}} | ({} if content is None else {"content": content})
    return {
        "description": str(request.get("message", "")),
        "oneOf": [
            {"type": "object", "properties": accept, "required": list(accept)},
            {"type": "object", "properties": {"action": {"enum": ["decline", "cancel"]}}, "required": ["action"]},
        ],
    }


def _plain(value: Any, depth: int = 0) -> Any:
    """A value as JSON that every store can hold. What JSON does not have becomes text."""
    if depth > MAX_DEPTH:
        return _text(str(value), MAX_NAME_CHARS)
    if isinstance(value, Mapping):
        items = cast(Mapping[Any, Any], value).items()
        return {_text(str(name)): _plain(inner, depth + 1) for name, inner in items}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(inner, depth + 1) for inner in cast(Sequence[Any], value)]
    if isinstance(value, float):
        return value if value - value == 0 else str(value)
    return value if value is None or isinstance(value, bool | int) else _text(str(value))


def _text(value: str, limit: int | None = None) -> str:
    """Without what Postgres and JSON cannot hold: NUL, and halves of a character."""
    whole = value.replace("\0", "").encode(errors="ignore").decode()
    return whole if limit is None or len(whole) <= limit else f"{whole[: limit - 1]}…"
