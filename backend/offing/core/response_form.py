"""Response form of a graph's own interrupt: decisions about tool calls, or a JSON schema.

These are pure values. A form is data from a graph, so its texts are untrusted and limited in size.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, cast

MAX_REVIEWS = 50
"""Maximum number of tool calls of one input request. A request about more is asked as free text."""

MAX_ARGS_CHARS = 50_000
"""Maximum length of the arguments of one tool call as JSON. Longer arguments are left out of the form."""

MAX_FORM_CHARS = 200_000
"""Maximum length of all arguments of one form as JSON."""

MAX_SCHEMA_CHARS = 50_000
"""Maximum length of a JSON schema. A longer schema is left out of the form."""

MAX_RESPONSE_CHARS = 100_000
"""Maximum length of a response to a form."""


class ToolReviewDecisionType(StrEnum):
    """Decision of a person about a tool call."""

    APPROVE = "approve"
    EDIT = "edit"
    """Make the call with other arguments."""
    REJECT = "reject"
    RESPOND = "respond"
    """Do not make the call. The person's message is its result."""
    IGNORE = "ignore"


class ResponseShape(StrEnum):
    """Format that the interrupted node reads."""

    VALUE = "value"
    """A JSON value that matches the schema."""
    DECISIONS = "decisions"
    """`{"decisions": [...]}`, which LangChain's HumanInTheLoopMiddleware reads for all calls of a turn."""
    DECISION = "decision"
    """One decision, which that middleware reads for each call."""
    RESPONSES = "responses"
    """A list of LangGraph's `HumanResponse`."""


@dataclass(frozen=True, slots=True)
class ToolReview:
    """A tool call for review by a person."""

    name: str
    args: Mapping[str, Any] | None
    """`None` means that the arguments are too long to be shown."""
    description: str
    """The graph's description of the call. Empty means none."""
    decisions: tuple[ToolReviewDecisionType, ...]
    """Allowed decisions, in the graph's order."""


@dataclass(frozen=True, slots=True)
class ResponseForm:
    """Required form of a response. `reviews` is empty for the shape `value`, which always has a schema."""

    shape: ResponseShape
    reviews: tuple[ToolReview, ...] = ()
    schema: Mapping[str, Any] | None = None
    """JSON schema of the value that the node reads. `None` means that the graph gives none."""


def form_to_json(response_form: ResponseForm) -> dict[str, Any]:
    """Return a form as its step stores it.

    Objects are stored as pairs, because stored JSON loses the order of keys. Texts are separate values,
    so that erasure finds them.
    """
    reviews = [
        {
            "name": review.name,
            "args": _to_pairs(review.args),
            "description": review.description,
            "decisions": list(review.decisions),
        }
        for review in response_form.reviews
    ]
    return {"shape": response_form.shape, "reviews": reviews, "schema": _to_pairs(response_form.schema)}


def form_from_json(stored: Mapping[str, Any]) -> ResponseForm:
    reviews = tuple(
        ToolReview(
            one["name"],
            _from_pairs(one["args"]),
            one["description"],
            tuple(ToolReviewDecisionType(name) for name in one["decisions"]),
        )
        for one in stored["reviews"]
    )
    return ResponseForm(ResponseShape(stored["shape"]), reviews, _from_pairs(stored["schema"]))


def _to_pairs(value: Any) -> Any:
    """Return a JSON value with its objects as pairs of name and value."""
    if isinstance(value, Mapping):
        return {"pairs": [[name, _to_pairs(inner)] for name, inner in cast(Mapping[str, Any], value).items()]}
    return [_to_pairs(inner) for inner in cast(list[Any], value)] if isinstance(value, list) else value


def _from_pairs(stored: Any) -> Any:
    if isinstance(stored, Mapping):
        return {name: _from_pairs(inner) for name, inner in cast(Mapping[str, Any], stored)["pairs"]}
    return [_from_pairs(inner) for inner in cast(list[Any], stored)] if isinstance(stored, list) else stored
