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
    _503="Postgres did not answer, or the server is busy; try again after `Retry-After`.",
)
"""Of every route."""

GUARDED = OPEN | problems(_401="No usable key or session.", _403="A write of another origin, or without CSRF token.")
"""Of every route that needs a caller."""

NO_RUN = problems(_404="There is no such run.")

NO_SOURCE = problems(_404="There is no such source or text.")

TOO_LARGE = problems(_413="The body is larger than allowed.")

TOO_MANY_STREAMS = problems(_429="The tenant or the key has as many streams and waiting calls open as it may.")

UPLOADS = TOO_LARGE | problems(
    _429="This tenant has too many uploads in progress; send it again after `Retry-After`.",
)

ENDED = problems(_409="The run's state does not allow this.")

EVENT: dict[str, Any] = {
    "type": "object",
    "required": ["event", "data"],
    "properties": {
        "event": {"type": "string", "enum": ["step", "run", "live", "end"]},
        "data": {"type": "string", "contentMediaType": "application/json"},
        "id": {"type": "string", "description": "Of `step` events only: where to go on, as Last-Event-ID."},
    },
}

EVENTS: Responses = {
    200: {"description": "Each event as it happens.", "content": {"text/event-stream": {"schema": EVENT}}}
}
