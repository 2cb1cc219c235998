"""Recognize the interrupts of common packages by their value, and return the forms of their responses.

Supported are both modes of langchain's HumanInTheLoopMiddleware, LangGraph's `HumanInterrupt`,
langchain's MCP elicitation, and any `interrupt` with a response schema. Other interrupts have no
form.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

from offing.core.json_schema import as_mapping, as_sequence, resolve_reference
from offing.core.response_form import (
    MAX_ARGS_CHARS,
    MAX_FORM_CHARS,
    MAX_REVIEWS,
    MAX_SCHEMA_CHARS,
    ResponseForm,
    ResponseShape,
    ToolReview,
    ToolReviewDecisionType,
)

MAX_NAME_CHARS = 200
MAX_DESCRIPTION_CHARS = 4_000
MAX_DEPTH = 20

_DECISION_BY_OPTION = {
    "allow_accept": ToolReviewDecisionType.APPROVE,
    "allow_edit": ToolReviewDecisionType.EDIT,
    "allow_respond": ToolReviewDecisionType.RESPOND,
    "allow_ignore": ToolReviewDecisionType.IGNORE,
}


def find_response_form(value: Any, schema: Any) -> ResponseForm | None:
    """Return the response form of an interrupt. `None` means free text.

    `schema` is the `response_schema` of the interrupt, which LangGraph provides as JSON schema.
    """
    form = _limit_schema(schema)
    mapping = as_mapping(value)
    if "action_requests" in mapping:
        return _build_review_form(ResponseShape.DECISIONS, _parse_action_requests(mapping), form)
    if mapping.get("type") == "tool_approval" and isinstance(schema, Mapping):
        decisions = _parse_allowed_decisions(cast(Mapping[str, Any], schema))
        return _build_review_form(ResponseShape.DECISION, [_build_review(mapping, "name", mapping, decisions)], form)
    if requests := _parse_human_interrupts(value):
        return _build_review_form(ResponseShape.RESPONSES, [_build_human_review(one) for one in requests], form)
    if mapping.get("type") == "mcp_elicitation":
        form = _limit_schema(_build_elicitation_schema(as_sequence(mapping.get("requests"))))
    return None if form is None else ResponseForm(ResponseShape.VALUE, schema=form)


def _build_review_form(
    shape: ResponseShape, reviews: Sequence[ToolReview | None], schema: Mapping[str, Any] | None
) -> ResponseForm | None:
    """Return the form for these tool calls.

    `None` means that one of them cannot be decided about, so that no response to the form would be
    valid.
    """
    valid_reviews = [review for review in reviews if review is not None]
    if not valid_reviews or len(valid_reviews) < len(reviews) or len(valid_reviews) > MAX_REVIEWS:
        return None
    return ResponseForm(shape, tuple(_omit_large_args(valid_reviews)), schema)


def _parse_action_requests(value: Mapping[str, Any]) -> list[ToolReview | None]:
    configs = [as_mapping(one) for one in as_sequence(value.get("review_configs"))]
    reviews: list[ToolReview | None] = []
    for at, one in enumerate(as_sequence(value.get("action_requests"))):
        request = as_mapping(one)
        # The middleware has one configuration per request, other packages one per tool.
        named = [
            config for config in configs[at : at + 1] + configs if config.get("action_name") == request.get("name")
        ]
        allowed = as_sequence(named[0].get("allowed_decisions")) if named else ()
        reviews.append(
            _build_review(request, "name", request, [one for one in ToolReviewDecisionType if one in allowed])
        )
    return reviews


def _parse_allowed_decisions(schema: Mapping[str, Any]) -> list[ToolReviewDecisionType]:
    """Return the decision types that the schema of one decision allows."""
    options = as_sequence(schema.get("oneOf")) or as_sequence(schema.get("anyOf")) or [schema]
    wholes = [
        as_mapping(resolve_reference(schema, one["$ref"]) if "$ref" in as_mapping(one) else one) for one in options
    ]
    names = [as_mapping(as_mapping(one.get("properties")).get("type")).get("const") for one in wholes]
    return [one for one in ToolReviewDecisionType if one in names]


def _parse_human_interrupts(value: Any) -> Sequence[Mapping[str, Any]]:
    """Return the items of a list of LangGraph's `HumanInterrupt`, or a single one.

    The response to both is a list.
    """
    items: Sequence[Any] = [value] if isinstance(value, Mapping) else as_sequence(value)
    fields = [as_mapping(one) for one in items]
    return fields if all("action_request" in one and "config" in one for one in fields) else ()


def _build_human_review(value: Mapping[str, Any]) -> ToolReview | None:
    config = as_mapping(value.get("config"))
    allowed = [decision for name, decision in _DECISION_BY_OPTION.items() if config.get(name) is True]
    return _build_review(as_mapping(value.get("action_request")), "action", value, allowed)


def _build_review(
    request: Mapping[str, Any], name: str, described: Mapping[str, Any], allowed: Sequence[ToolReviewDecisionType]
) -> ToolReview | None:
    tool, args, words = request.get(name), request.get("args"), described.get("description")
    if not isinstance(tool, str) or not tool.strip() or not isinstance(args, Mapping) or not allowed:
        return None
    # The default description of langchain only repeats the call.
    detail = words.removesuffix(f"\n\nTool: {tool}\nArgs: {args}") if isinstance(words, str) else ""
    json_args = cast(Mapping[str, Any], _to_json_value(args))
    return ToolReview(
        _clean_text(tool, MAX_NAME_CHARS), json_args, _clean_text(detail, MAX_DESCRIPTION_CHARS), tuple(allowed)
    )


def _omit_large_args(reviews: Sequence[ToolReview]) -> list[ToolReview]:
    remaining, limited_reviews = MAX_FORM_CHARS, list[ToolReview]()
    for review in reviews:
        size = len(json.dumps(review.args))
        fits = size <= min(remaining, MAX_ARGS_CHARS)
        remaining -= size if fits else 0
        limited_reviews.append(review if fits else ToolReview(review.name, None, review.description, review.decisions))
    return limited_reviews


def _limit_schema(schema: Any) -> Mapping[str, Any] | None:
    if not isinstance(schema, Mapping):
        return None
    limited = cast(Mapping[str, Any], _to_json_value(schema))
    return limited if len(json.dumps(limited)) <= MAX_SCHEMA_CHARS else None


def _build_elicitation_schema(requests: Sequence[Any]) -> dict[str, Any] | None:
    """Return the schema that langchain expects for responses to an MCP server: one response per key."""
    named = {str(one.get("key")): _build_elicitation_response_schema(one) for one in map(as_mapping, requests)}
    answers = {"type": "object", "properties": named, "required": list(named), "additionalProperties": False}
    return {"type": "object", "properties": {"responses": answers}, "required": ["responses"]} if named else None


def _build_elicitation_response_schema(request: Mapping[str, Any]) -> dict[str, Any]:
    content = request.get("requested_schema") if request.get("mode") == "form" else None
    accept: dict[str, Any] = {"action": {"const": "accept"}} | ({} if content is None else {"content": content})
    return {
        "description": str(request.get("message", "")),
        "oneOf": [
            {"type": "object", "properties": accept, "required": list(accept)},
            {"type": "object", "properties": {"action": {"enum": ["decline", "cancel"]}}, "required": ["action"]},
        ],
    }


def _to_json_value(value: Any, depth: int = 0) -> Any:
    """Return a value as JSON that every store accepts. Values that JSON does not support become text."""
    if depth > MAX_DEPTH:
        return _clean_text(str(value), MAX_NAME_CHARS)
    if isinstance(value, Mapping):
        items = cast(Mapping[Any, Any], value).items()
        return {_clean_text(str(name)): _to_json_value(inner, depth + 1) for name, inner in items}
    if isinstance(value, list | tuple | set | frozenset):
        return [_to_json_value(inner, depth + 1) for inner in cast(Sequence[Any], value)]
    if isinstance(value, float):
        return value if value - value == 0 else str(value)
    return value if value is None or isinstance(value, bool | int) else _clean_text(str(value))


def _clean_text(value: str, max_chars: int | None = None) -> str:
    """Remove what Postgres and JSON do not accept: NUL and lone surrogates."""
    whole = value.replace("\0", "").encode(errors="ignore").decode()
    return whole if max_chars is None or len(whole) <= max_chars else f"{whole[: max_chars - 1]}…"
