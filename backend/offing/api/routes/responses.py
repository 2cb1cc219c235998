"""Descriptions of responses besides the successful one, for the OpenAPI document."""

from typing import Any

from offing.api.schemas.base import Problem

Responses = dict[int | str, dict[str, Any]]


def describe_problems(**descriptions: str) -> Responses:
    """Return problem responses, as in `describe_problems(_404="There is no such run.")`."""
    return {int(status[1:]): {"model": Problem, "description": text} for status, text in descriptions.items()}


OPEN_RESPONSES = describe_problems(
    _421="The Host header names another server.",
    _422="The request contains an invalid value. `field` and `remedy` say what to change.",
    _503="Postgres did not answer, or the server is busy. Try again after `Retry-After`.",
)
"""Responses of every route."""

GUARDED_RESPONSES = OPEN_RESPONSES | describe_problems(
    _401="There is no valid key or session.", _403="The write comes from another origin or lacks the CSRF token."
)
"""Responses of every route that needs a caller."""

RUN_NOT_FOUND = describe_problems(_404="There is no such run.")

SOURCE_NOT_FOUND = describe_problems(_404="There is no such source or text.")

BODY_TOO_LARGE = describe_problems(_413="The body is too large.")

TOO_MANY_STREAMS = describe_problems(
    _429="The tenant or the key has reached its maximum number of open streams and waiting calls."
)

UPLOAD_RESPONSES = BODY_TOO_LARGE | describe_problems(
    _429="This tenant has too many uploads in progress. Send the request again after `Retry-After`.",
)

RUN_STATE_CONFLICT = describe_problems(_409="The state of the run does not allow this.")

EVENT_STREAM_CONTENT: dict[str, Any] = {
    "type": "object",
    "required": ["event", "data"],
    "properties": {
        "event": {"type": "string", "enum": ["step", "run", "live", "draft", "draft_end", "end"]},
        "data": {"type": "string", "contentMediaType": "application/json"},
        "id": {
            "type": "string",
            "description": "Only for `step` events. Send it as Last-Event-ID to continue after this event.",
        },
    },
}

EVENT_STREAM_RESPONSES: Responses = {
    200: {
        "description": "Each event when it happens.",
        "content": {"text/event-stream": {"schema": EVENT_STREAM_CONTENT}},
    }
}
