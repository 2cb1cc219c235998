"""A person's response to a form, and the value that the interrupted node reads.

A response is text: the JSON that the node reads, or one of the words that `describe_choices` names.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from offing.core.errors import InvalidInput
from offing.core.json_schema import check_value
from offing.core.response_form import MAX_RESPONSE_CHARS, DecisionType, ResponseForm, ResponseShape, ToolReview

MAX_MESSAGE_CHARS = 20_000

_WORDS = {
    "approve": DecisionType.APPROVE,
    "accept": DecisionType.APPROVE,
    "yes": DecisionType.APPROVE,
    "y": DecisionType.APPROVE,
    "edit": DecisionType.EDIT,
    "reject": DecisionType.REJECT,
    "no": DecisionType.REJECT,
    "n": DecisionType.REJECT,
    "respond": DecisionType.RESPOND,
    "response": DecisionType.RESPOND,
    "ignore": DecisionType.IGNORE,
}

_TYPED = {
    DecisionType.APPROVE: "approve",
    DecisionType.EDIT: "edit: {the arguments as JSON}",
    DecisionType.REJECT: "reject: why",
    DecisionType.RESPOND: "respond: your text",
    DecisionType.IGNORE: "ignore",
}

_LINE = re.compile(r"([A-Za-z]+)(?:\s*[:,]|\s|$)\s*(.*)", re.DOTALL)
_KEYS = frozenset(("type", "message", "edited_action", "args"))


@dataclass(frozen=True, slots=True)
class Decision:
    """What a person decides about one tool call."""

    type: DecisionType
    name: str = ""
    """Of the edited call."""
    args: Mapping[str, Any] | None = None
    """Of the edited call. `None` for the other decisions."""
    message: str = ""
    """To a rejection, where it may be empty, or in place of the result."""


def response_value(form: ResponseForm, text: str) -> Any:
    """Return what the node reads for a response. Raises InvalidInput, which names the field and what fits."""
    if len(text) > MAX_RESPONSE_CHARS:
        raise InvalidInput("text", f"has more than {MAX_RESPONSE_CHARS} characters", "Shorten it.")
    if form.shape is ResponseShape.VALUE:
        return _value(form.schema or {}, text)
    value = _shaped(form.shape, _decisions(form.reviews, text))
    if form.schema is not None:
        check_value(form.schema, value, "decisions[0]" if form.shape is ResponseShape.DECISION else "decisions")
    return value


def describe_choices(review: ToolReview) -> str:
    """Return what may be typed about a tool call."""
    return ", ".join(_TYPED[one] for one in review.decisions)


def describe_response(form: ResponseForm, text: str) -> str:
    """Return a response that fits its form in a line, for a timeline."""
    if form.shape is ResponseShape.VALUE:
        return text
    words = [_described(one) for one in _decisions(form.reviews, text)]
    if len(words) == 1:
        return words[0]
    return "; ".join(f"{review.name}: {word}" for review, word in zip(form.reviews, words, strict=True))


def _described(decision: Decision) -> str:
    return f"{decision.type}: {decision.message}" if decision.message else str(decision.type)


def _value(schema: Mapping[str, Any], text: str) -> Any:
    """The JSON that the text is, or the text itself where a string is expected."""
    try:
        parsed = _parsed(text)
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


def _decisions(reviews: Sequence[ToolReview], text: str) -> list[Decision]:
    try:
        parsed = _parsed(text)
    except ValueError:
        return _typed(reviews, text)
    if isinstance(parsed, str):
        return _typed(reviews, parsed)
    if isinstance(parsed, dict):
        found = cast(dict[str, Any], parsed)
        parsed = found.get("decisions", [found])
    if not isinstance(parsed, list):
        raise InvalidInput("decisions", "is no list of decisions", _remedy(reviews))
    items = cast(list[Any], parsed)
    if len(items) != len(reviews):
        what = f"has {len(items)} for {len(reviews)} tool calls"
        raise InvalidInput("decisions", what, "Give one decision for each call, in their order.")
    pairs = zip(reviews, items, strict=True)
    return [_decision(review, item, f"decisions[{at}]") for at, (review, item) in enumerate(pairs)]


def _typed(reviews: Sequence[ToolReview], text: str) -> list[Decision]:
    """Decisions in words: a line for each tool call, or one line for all of them."""
    lines = [text] if len(reviews) == 1 else [line for line in text.split("\n") if line.strip()]
    if len(lines) == 1 and _type_in(text) not in (DecisionType.EDIT, DecisionType.RESPOND):
        lines *= len(reviews)
    if len(lines) != len(reviews):
        raise InvalidInput("text", f"does not decide about all {len(reviews)} tool calls", _remedy(reviews))
    return [_typed_decision(review, line.strip(), reviews) for review, line in zip(reviews, lines, strict=True)]


def _type_in(line: str) -> DecisionType | None:
    match = _LINE.fullmatch(line.strip())
    return None if match is None else _WORDS.get(match[1].lower())


def _typed_decision(review: ToolReview, line: str, reviews: Sequence[ToolReview]) -> Decision:
    kind, match = _type_in(line), _LINE.fullmatch(line)
    if kind is None or match is None:
        raise InvalidInput("text", f"is no decision about {review.name}", _remedy(reviews))
    rest, item = match[2].strip(), dict[str, Any](type=kind)
    if kind is DecisionType.EDIT:
        item["edited_action"] = {"args": _args_in(rest, review)}
    elif rest:
        item["message"] = rest
    return _decision(review, item, "text")


def _args_in(text: str, review: ToolReview) -> Any:
    try:
        return _parsed(text)
    except ValueError:
        problem = f"has no arguments for {review.name} that are JSON"
        raise InvalidInput("text", problem, 'Type them as an object: edit: {"name": "value"}.') from None


def _decision(review: ToolReview, item: Any, field: str) -> Decision:
    if not isinstance(item, dict):
        raise InvalidInput(field, "is no object with a type", _allowed(review))
    given = cast(dict[str, Any], item)
    kind = _WORDS.get(str(given.get("type")))
    if kind is None or kind not in review.decisions:
        named = field if field == "text" else f"{field}.type"
        raise InvalidInput(named, f"is no decision that {review.name} allows", _allowed(review))
    if unknown := sorted(given.keys() - _KEYS):
        raise InvalidInput(f"{field}.{unknown[0]}", "is not a field of a decision", "Leave it out.")
    if kind is DecisionType.EDIT:
        return _edit(review, given, field)
    return Decision(kind, message=_message(kind, given, field))


def _message(kind: DecisionType, given: Mapping[str, Any], field: str) -> str:
    # LangGraph's form of a text response has it in `args`.
    message = given.get("message") or given.get("args") or ""
    named = field if field == "text" else f"{field}.message"
    if not isinstance(message, str) or len(message) > MAX_MESSAGE_CHARS:
        raise InvalidInput(named, f"must be a text of at most {MAX_MESSAGE_CHARS} characters", "Send such a text.")
    if kind is DecisionType.RESPOND and not message.strip():
        raise InvalidInput(named, "is empty", "Write what the tool call should return.")
    if message and kind in (DecisionType.APPROVE, DecisionType.IGNORE):
        raise InvalidInput(named, f"is not sent with the decision to {kind}", f"Leave it out, and say {kind} alone.")
    if given.get("edited_action") is not None:
        raise InvalidInput(f"{field}.edited_action", "belongs to an edit alone", "Leave it out, or choose edit.")
    return message


def _edit(review: ToolReview, given: Mapping[str, Any], field: str) -> Decision:
    """An edited call, in langchain's form or in LangGraph's, which names its parts otherwise."""
    action: Any = given.get("edited_action") or given.get("args")
    named = field if field == "text" else f"{field}.edited_action"
    if not isinstance(action, dict):
        raise InvalidInput(named, "is required for an edit", "Send the arguments with which the tool is called.")
    parts = cast(dict[str, Any], action)
    name, args = parts.get("name") or parts.get("action") or review.name, parts.get("args")
    if not isinstance(args, dict):
        raise InvalidInput(named if field == "text" else f"{named}.args", "must be an object", "Send all arguments.")
    if not isinstance(name, str) or given.get("message"):
        raise InvalidInput(field, "is no edit", "Send the tool's name and its arguments, and no message.")
    return Decision(DecisionType.EDIT, name, cast(dict[str, Any], args))


def _shaped(shape: ResponseShape, decisions: Sequence[Decision]) -> Any:
    if shape is ResponseShape.RESPONSES:
        return [_human_response(one) for one in decisions]
    written = [_written(one) for one in decisions]
    return written[0] if shape is ResponseShape.DECISION else {"decisions": written}


def _written(decision: Decision) -> dict[str, Any]:
    """As langchain's middleware reads it."""
    if decision.type is DecisionType.EDIT:
        return {"type": "edit", "edited_action": {"name": decision.name, "args": decision.args}}
    return {"type": str(decision.type)} | ({"message": decision.message} if decision.message else {})


def _human_response(decision: Decision) -> dict[str, Any]:
    """As LangGraph's `HumanResponse`."""
    match decision.type:
        case DecisionType.EDIT:
            return {"type": "edit", "args": {"action": decision.name, "args": decision.args}}
        case DecisionType.RESPOND:
            return {"type": "response", "args": decision.message}
        case DecisionType.APPROVE:
            return {"type": "accept", "args": None}
        case DecisionType.REJECT | DecisionType.IGNORE:
            return {"type": "ignore", "args": None}


def _allowed(review: ToolReview) -> str:
    return f"Choose one of: {', '.join(review.decisions)}."


def _remedy(reviews: Sequence[ToolReview]) -> str:
    if len(reviews) == 1:
        return f"Answer with one of: {describe_choices(reviews[0])}."
    shared = [one for one in reviews[0].decisions if all(one in review.decisions for review in reviews)]
    words = f" Allowed for all: {', '.join(shared)}." if shared else ""
    return f"Write one line for each call, in their order, or one decision for all.{words}"


def _parsed(text: str) -> Any:
    """The JSON that a text is. Raises ValueError."""
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except RecursionError:
        raise ValueError("too deep") from None


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")
