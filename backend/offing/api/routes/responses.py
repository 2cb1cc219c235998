"""What routes say about their answers besides the usual one, for the OpenAPI document."""

from typing import Any

from offing.api.schemas import Problem

Responses = dict[int | str, dict[str, Any]]


def problems(**meanings: str) -> Responses:
    """Problem responses: `problems(_404="There is no such run.")`."""
    return {int(status[1:]): {"model": Problem, "description": text} for status, text in meanings.items()}


OPEN = problems(
    _421="The Host header names another server.",
    _422="Something in the request cannot be used; `field` and `remedy` say what to change.",
    _503="Postgres did not answer; try again.",
)
"""Of every route."""

GUARDED = OPEN | problems(_401="No usable key or session.", _403="A write of another origin, or without CSRF token.")
"""Of every route that needs a caller."""

NO_RUN = problems(_404="There is no such run.")

NO_SOURCE = problems(_404="There is no such source or text.")

TOO_LARGE = problems(_413="The body is larger than allowed.")

ENDED = problems(_409="The run's state does not allow this.")

EVENTS: Responses = {
    200: {"description": "Events as they happen.", "content": {"text/event-stream": {"schema": {"type": "string"}}}}
}
