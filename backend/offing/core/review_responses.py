"""Parser of a person's response to an interrupt: it returns the value that the interrupted node reads.

A response is text. It is either the JSON that the node reads, or one of the words that
`describe_choices` names.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from offing.core.errors import InvalidInput
from offing.core.json_schema import check_value
from offing.core.response_form import (
    MAX_RESPONSE_CHARS,
    ResponseForm,
    ResponseShape,
    ToolReview,
    ToolReviewDecisionType,
)

MAX_MESSAGE_CHARS = 20_000

_DECISION_WORDS = {
    "approve": ToolReviewDecisionType.APPROVE,
    "accept": ToolReviewDecisionType.APPROVE,
    "yes": ToolReviewDecisionType.APPROVE,
    "y": ToolReviewDecisionType.APPROVE,
    "edit": ToolReviewDecisionType.EDIT,
    "reject": ToolReviewDecisionType.REJECT,
    "no": ToolReviewDecisionType.REJECT,
    "n": ToolReviewDecisionType.REJECT,
    "respond": ToolReviewDecisionType.RESPOND,
    "response": ToolReviewDecisionType.RESPOND,
    "ignore": ToolReviewDecisionType.IGNORE,
}

_TYPED_EXAMPLES = {
    ToolReviewDecisionType.APPROVE: "approve",
    ToolReviewDecisionType.EDIT: "edit: {the arguments as JSON}",
    ToolReviewDecisionType.REJECT: "reject: why",
    ToolReviewDecisionType.RESPOND: "respond: your text",
    ToolReviewDecisionType.IGNORE: "ignore",
}

_LINE = re.compile(r"([A-Za-z]+)(?:\s*[:,]|\s|$)\s*(.*)", re.DOTALL)
_KEYS = frozenset(("type", "message", "edited_action", "args"))


@dataclass(frozen=True, slots=True)
class ToolReviewDecision:
    """A person's decision about one tool call."""

    type: ToolReviewDecisionType
    name: str = ""
    """Name of the tool of the edited call."""
    args: Mapping[str, Any] | None = None
    """Arguments of the edited call. `None` for all other decisions."""
    message: str = ""
    """Message of a rejection, which may be empty, or the text that replaces the result."""


def parse_response(response_form: ResponseForm, text: str) -> Any:
    """Return the value that the interrupted node reads for a response.

    Raises InvalidInput, which names the field and the allowed values.
    """
    if len(text) > MAX_RESPONSE_CHARS:
        raise InvalidInput("text", f"has more than {MAX_RESPONSE_CHARS} characters", "Shorten it.")
    if response_form.shape is ResponseShape.VALUE:
        return _parse_value(response_form.schema or {}, text)
    value = _apply_shape(response_form.shape, _parse_decisions(response_form.reviews, text))
    if response_form.schema is not None:
        check_value(
            response_form.schema,
            value,
            "decisions[0]" if response_form.shape is ResponseShape.DECISION else "decisions",
        )
    return value


def describe_choices(review: ToolReview) -> str:
    """Describe what a person may type about a tool call."""
    return ", ".join(_TYPED_EXAMPLES[one] for one in review.decisions)


def describe_response(response_form: ResponseForm, text: str) -> str:
    """Summarize a response that matches its form in one line for the timeline."""
    if response_form.shape is ResponseShape.VALUE:
        return text
    words = [_describe_decision(one) for one in _parse_decisions(response_form.reviews, text)]
    if len(words) == 1:
        return words[0]
    return "; ".join(f"{review.name}: {word}" for review, word in zip(response_form.reviews, words, strict=True))


def _describe_decision(decision: ToolReviewDecision) -> str:
    return f"{decision.type}: {decision.message}" if decision.message else str(decision.type)


def _parse_value(schema: Mapping[str, Any], text: str) -> Any:
    """Parse the text as JSON. Return the text itself where the schema expects a string."""
    try:
        parsed = _parse_json(text)
    except ValueError:
        check_value(schema, text, "text")
        return text
    try:
        check_value(schema, parsed, "text")
    except InvalidInput as problem:
        try:
            check_value(schema, text, "text")
        except InvalidInput:
            raise problem from None
        return text
    return parsed


def _parse_decisions(reviews: Sequence[ToolReview], text: str) -> list[ToolReviewDecision]:
    try:
        parsed = _parse_json(text)
    except ValueError:
        return _parse_typed_decisions(reviews, text)
    if isinstance(parsed, str):
        return _parse_typed_decisions(reviews, parsed)
    if isinstance(parsed, dict):
        decision = cast(dict[str, Any], parsed)
        parsed = decision.get("decisions", [decision])
    if not isinstance(parsed, list):
        raise InvalidInput("decisions", "is not a list of decisions", _build_remedy(reviews))
    items = cast(list[Any], parsed)
    if len(items) != len(reviews):
        what = f"has {len(items)} decisions for {len(reviews)} tool calls"
        raise InvalidInput("decisions", what, "Give one decision per call, in order.")
    pairs = zip(reviews, items, strict=True)
    return [_parse_json_decision(review, item, f"decisions[{at}]") for at, (review, item) in enumerate(pairs)]


def _parse_typed_decisions(reviews: Sequence[ToolReview], text: str) -> list[ToolReviewDecision]:
    """Parse decisions that were written in words: one line per tool call, or one line for all of them."""
    lines = [text] if len(reviews) == 1 else [line for line in text.split("\n") if line.strip()]
    if len(lines) == 1 and _find_decision_type(text) not in (
        ToolReviewDecisionType.EDIT,
        ToolReviewDecisionType.RESPOND,
    ):
        lines *= len(reviews)
    if len(lines) != len(reviews):
        raise InvalidInput(
            "text", f"does not contain a decision about each of the {len(reviews)} tool calls", _build_remedy(reviews)
        )
    return [_parse_typed_decision(review, line.strip(), reviews) for review, line in zip(reviews, lines, strict=True)]


def _find_decision_type(line: str) -> ToolReviewDecisionType | None:
    match = _LINE.fullmatch(line.strip())
    return None if match is None else _DECISION_WORDS.get(match[1].lower())


def _parse_typed_decision(review: ToolReview, line: str, reviews: Sequence[ToolReview]) -> ToolReviewDecision:
    kind, match = _find_decision_type(line), _LINE.fullmatch(line)
    if kind is None or match is None:
        raise InvalidInput("text", f"is not a decision about {review.name}", _build_remedy(reviews))
    rest, item = match[2].strip(), dict[str, Any](type=kind)
    if kind is ToolReviewDecisionType.EDIT:
        item["edited_action"] = {"args": _parse_args(rest, review)}
    elif rest:
        item["message"] = rest
    return _parse_json_decision(review, item, "text")


def _parse_args(text: str, review: ToolReview) -> Any:
    try:
        return _parse_json(text)
    except ValueError:
        problem = f"has no valid JSON with arguments for {review.name}"
        raise InvalidInput("text", problem, "Write them as a JSON object after `edit:`.") from None


def _parse_json_decision(review: ToolReview, item: Any, field: str) -> ToolReviewDecision:
    if not isinstance(item, dict):
        raise InvalidInput(field, "is not an object with a type", _describe_allowed(review))
    value = cast(dict[str, Any], item)
    kind = _DECISION_WORDS.get(str(value.get("type")))
    if kind is None or kind not in review.decisions:
        named = field if field == "text" else f"{field}.type"
        raise InvalidInput(named, f"is not a decision that {review.name} allows", _describe_allowed(review))
    if unknown := sorted(value.keys() - _KEYS):
        raise InvalidInput(f"{field}.{unknown[0]}", "is not a field of a decision", "Leave it out.")
    if kind is ToolReviewDecisionType.EDIT:
        return _parse_edit(review, value, field)
    return ToolReviewDecision(kind, message=_check_message(kind, value, field))


def _check_message(kind: ToolReviewDecisionType, value: Mapping[str, Any], field: str) -> str:
    # LangGraph puts the text of a response into `args`.
    message = value.get("message") or value.get("args") or ""
    named = field if field == "text" else f"{field}.message"
    if not isinstance(message, str) or len(message) > MAX_MESSAGE_CHARS:
        raise InvalidInput(
            named, f"must be a text of at most {MAX_MESSAGE_CHARS} characters", "Shorten the message, or send a text."
        )
    if kind is ToolReviewDecisionType.RESPOND and not message.strip():
        raise InvalidInput(named, "is empty", "Write the result that the tool call should return.")
    if message and kind in (ToolReviewDecisionType.APPROVE, ToolReviewDecisionType.IGNORE):
        raise InvalidInput(
            named,
            f"cannot be combined with the decision {kind}",
            f"Leave it out, or choose a decision other than {kind}.",
        )
    if value.get("edited_action") is not None:
        raise InvalidInput(f"{field}.edited_action", "is only allowed for an edit", "Leave it out, or choose edit.")
    return message


def _parse_edit(review: ToolReview, value: Mapping[str, Any], field: str) -> ToolReviewDecision:
    """Parse an edited call. LangChain and LangGraph name its fields differently; both forms are accepted."""
    action: Any = value.get("edited_action") or value.get("args")
    named = field if field == "text" else f"{field}.edited_action"
    if not isinstance(action, dict):
        raise InvalidInput(named, "is required for an edit", "Send the arguments for the call.")
    parts = cast(dict[str, Any], action)
    name, args = parts.get("name") or parts.get("action") or review.name, parts.get("args")
    if not isinstance(args, dict):
        raise InvalidInput(named if field == "text" else f"{named}.args", "must be an object", "Send all arguments.")
    if not isinstance(name, str) or value.get("message"):
        raise InvalidInput(
            field, "is not a valid edit", "Send the name of the tool and its arguments, without a message."
        )
    return ToolReviewDecision(ToolReviewDecisionType.EDIT, name, cast(dict[str, Any], args))


def _apply_shape(shape: ResponseShape, decisions: Sequence[ToolReviewDecision]) -> Any:
    if shape is ResponseShape.RESPONSES:
        return [_human_response(one) for one in decisions]
    written = [_langchain_decision(one) for one in decisions]
    return written[0] if shape is ResponseShape.DECISION else {"decisions": written}


def _langchain_decision(decision: ToolReviewDecision) -> dict[str, Any]:
    """Return the decision in the format of LangChain's middleware."""
    if decision.type is ToolReviewDecisionType.EDIT:
        return {"type": "edit", "edited_action": {"name": decision.name, "args": decision.args}}
    return {"type": str(decision.type)} | ({"message": decision.message} if decision.message else {})


def _human_response(decision: ToolReviewDecision) -> dict[str, Any]:
    """Return the decision in the format of LangGraph's `HumanResponse`."""
    match decision.type:
        case ToolReviewDecisionType.EDIT:
            return {"type": "edit", "args": {"action": decision.name, "args": decision.args}}
        case ToolReviewDecisionType.RESPOND:
            return {"type": "response", "args": decision.message}
        case ToolReviewDecisionType.APPROVE:
            return {"type": "accept", "args": None}
        case ToolReviewDecisionType.REJECT | ToolReviewDecisionType.IGNORE:
            return {"type": "ignore", "args": None}


def _describe_allowed(review: ToolReview) -> str:
    return f"Choose one of: {', '.join(review.decisions)}."


def _build_remedy(reviews: Sequence[ToolReview]) -> str:
    if len(reviews) == 1:
        return f"Respond with one of: {describe_choices(reviews[0])}."
    shared = [one for one in reviews[0].decisions if all(one in review.decisions for review in reviews)]
    words = f" Allowed for all: {', '.join(shared)}." if shared else ""
    return f"Write one line per call, in order, or one decision for all.{words}"


def _parse_json(text: str) -> Any:
    """Parse text as JSON. Raises ValueError."""
    try:
        return json.loads(text, parse_constant=_reject_constant)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _reject_constant(name: str) -> Any:
    raise ValueError(f"{name} is not valid JSON")
