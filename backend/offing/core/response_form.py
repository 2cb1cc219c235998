"""The form that a graph's own interrupt expects its response in: decisions about tool calls, or a JSON schema.

Pure values. A form is data from a graph: its texts are untrusted and limited in size.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, cast

MAX_REVIEWS = 50
"""Tool calls of one input request. A request about more is asked as free text."""

MAX_ARGS_CHARS = 50_000
"""Length of the arguments of one tool call as JSON. Longer arguments are left out of the form."""

MAX_FORM_CHARS = 200_000
"""Length of all arguments of one form as JSON."""

MAX_SCHEMA_CHARS = 50_000
"""Length of a JSON schema. A longer schema is left out of the form."""

MAX_RESPONSE_CHARS = 100_000
"""Length of a response to a form."""


class DecisionType(StrEnum):
    """What a person decides about a tool call."""

    APPROVE = "approve"
    EDIT = "edit"
    """Make the call with other arguments."""
    REJECT = "reject"
    RESPOND = "respond"
    """Do not make the call; the person's message is its result."""
    IGNORE = "ignore"


class ResponseShape(StrEnum):
    """What the interrupted node reads."""

    VALUE = "value"
    """A JSON value that fits the schema."""
    DECISIONS = "decisions"
    """`{"decisions": [...]}`, as langchain's HumanInTheLoopMiddleware reads for all calls of a turn."""
    DECISION = "decision"
    """One decision, as that middleware reads for each call."""
    RESPONSES = "responses"
    """A list of LangGraph's `HumanResponse`."""


@dataclass(frozen=True, slots=True)
class ToolReview:
    """A tool call that a person decides about."""

    name: str
    args: Mapping[str, Any] | None
    """`None` means that the arguments are too long to be shown."""
    description: str
    """The graph's words about the call. Empty means that there are none."""
    decisions: tuple[DecisionType, ...]
    """The decisions that are allowed, in the graph's order."""


@dataclass(frozen=True, slots=True)
class ResponseForm:
    """What a response must look like. `reviews` is empty for the shape `value`, which always has a schema."""

    shape: ResponseShape
    reviews: tuple[ToolReview, ...] = ()
    schema: Mapping[str, Any] | None = None
    """JSON schema of what the node reads. `None` means that the graph gives none."""


def form_json(form: ResponseForm) -> dict[str, Any]:
    """Return a form as its step stores it.

    Objects are pairs, since stored JSON loses the order of keys. Texts stand by themselves, so that erasure finds them.
    """
    reviews = [
        {
            "name": review.name,
            "args": _ordered(review.args),
            "description": review.description,
            "decisions": list(review.decisions),
        }
        for review in form.reviews
    ]
    return {"shape": form.shape, "reviews": reviews, "schema": _ordered(form.schema)}


def form_from_json(stored: Mapping[str, Any]) -> ResponseForm:
    reviews = tuple(
        ToolReview(
            one["name"],
            _unordered(one["args"]),
            one["description"],
            tuple(DecisionType(name) for name in one["decisions"]),
        )
        for one in stored["reviews"]
    )
    return ResponseForm(ResponseShape(stored["shape"]), reviews, _unordered(stored["schema"]))


def _ordered(value: Any) -> Any:
    """A JSON value with its objects as pairs of name and value."""
    if isinstance(value, Mapping):
        return {"pairs": [[name, _ordered(inner)] for name, inner in cast(Mapping[str, Any], value).items()]}
    return [_ordered(inner) for inner in cast(list[Any], value)] if isinstance(value, list) else value


def _unordered(stored: Any) -> Any:
    if isinstance(stored, Mapping):
        return {name: _unordered(inner) for name, inner in cast(Mapping[str, Any], stored)["pairs"]}
    return [_unordered(inner) for inner in cast(list[Any], stored)] if isinstance(stored, list) else stored
