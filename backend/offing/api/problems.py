"""Render every error as RFC 9457 problem details, with the field and the fix if they are known.

This module maps errors to HTTP statuses. Internal details are never sent: an unexpected error is logged
completely and answered with a bare 500.
"""

import logging
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

import orjson
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from offing.api.coded_texts import serialize_problem_texts
from offing.api.schemas.base import Problem
from offing.api.shared_headers import hide_token
from offing.core.errors import Conflict, InvalidInput, NotFound, OffingError, Unauthorized, Unavailable

log = logging.getLogger(__name__)

MEDIA_TYPE = "application/problem+json"

STATUS_BY_ERROR: dict[type[OffingError], int] = {
    InvalidInput: 422,
    NotFound: 404,
    Conflict: 409,
    Unauthorized: 401,
    Unavailable: 503,
}

DEFAULT_REMEDIES = {
    401: "Send `Authorization: Bearer <key>` (`offing key create NAME` creates a key), or open a new login link.",
    404: "Check the address. Records of other tenants are not shown.",
    405: "The Allow header lists the allowed methods.",
    413: "Send at most 1 MB of JSON, or uploads of at most 25 MB per file and 256 MB per request.",
    429: "Try again in a few seconds.",
    503: "Try again in a few seconds.",
}


class ProblemError(HTTPException):
    """A request that is rejected before it reaches a service. `code` is stable and public."""

    def __init__(
        self,
        status: int,
        code: str,
        detail: str,
        remedy: str,
        field: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(status, detail, headers=headers)
        self.code, self.remedy, self.field = code, remedy, field


def build_problem_response(
    status: int,
    code: str,
    detail: str,
    *,
    field: str | None = None,
    remedy: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """Return a problem response. Its `type` is a URN made from `code`, not an address to fetch."""
    return _respond(_build_problem(status, code, detail, field, remedy), headers)


def _build_problem(status: int, code: str, detail: str, field: str | None, remedy: str | None) -> Problem:
    remedy = remedy or DEFAULT_REMEDIES.get(status)
    return Problem(
        type=f"urn:offing:problem:{code}",
        title=HTTPStatus(status).phrase,
        status=status,
        detail=detail,
        field=field,
        remedy=remedy,
        texts=serialize_problem_texts(detail=detail, remedy=remedy),
    )


def _respond(problem: Problem, headers: Mapping[str, str] | None = None) -> Response:
    status = problem.status
    extra = {"WWW-Authenticate": "Bearer"} if status == 401 else {"Retry-After": "2"} if status in (429, 503) else {}
    return Response(
        orjson.dumps(problem.model_dump()), status, media_type=MEDIA_TYPE, headers={**extra, **(headers or {})}
    )


def install_error_handlers(app: FastAPI) -> None:
    """Install the handlers that answer every kind of error of this app with a problem."""
    app.add_exception_handler(OffingError, _handle_offing_error)
    app.add_exception_handler(RequestValidationError, _handle_validation_error)
    app.add_exception_handler(HTTPException, _handle_http_error)


async def _handle_offing_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, OffingError)
    status = _find_status(error)
    if status == 500:
        return _respond_internal_error(request.scope, error)
    return _respond(describe_rejection(error))


def describe_rejection(error: OffingError) -> Problem:
    """Return the problem of a request, or why one of several records stays as it was.

    `error` is one of `STATUS_BY_ERROR`.
    """
    known = error if isinstance(error, InvalidInput | Conflict) else None
    field = error.field if isinstance(error, InvalidInput) else None
    detail, remedy = (known.problem, known.remedy) if known else (str(error), None)
    return _build_problem(_find_status(error), error.code, detail, field, remedy)


def _find_status(error: OffingError) -> int:
    return next((status for kind, status in STATUS_BY_ERROR.items() if isinstance(error, kind)), 500)


async def _handle_validation_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    faults: Sequence[Any] = error.errors()
    first = faults[0]
    field = render_field(first["loc"])
    others = sorted({render_field(f["loc"]) for f in faults[1:6]} - {field})
    detail = f"{field}: {first['msg']}" + (f". Also wrong: {', '.join(others)}" if others else "")
    return build_problem_response(
        422,
        "invalid_input",
        sanitize_for_response(detail),
        field=sanitize_for_response(field),
        remedy=_suggest_remedy(first),
    )


def render_field(location: Sequence[str | int]) -> str:
    """Return the name of the field at a validation error's location.

    This is `budget.max_turns` for a field of the body, the bare name for a query, path or header parameter, and
    otherwise the part of the request.
    """
    origin, *rest = location or ("body",)
    at_byte = origin == "body" and len(rest) == 1 and isinstance(rest[0], int)
    return str(origin) if at_byte or not rest else ".".join(map(str, rest))


def sanitize_for_response(text: str) -> str:
    """Return client text that is safe to send back: short, and without characters that break encoders or terminals."""
    return "".join(c if c.isprintable() else "�" for c in text.encode("utf-8", "replace").decode())[:400]


def _suggest_remedy(error: Mapping[str, Any]) -> str:
    match error["type"]:
        case "missing":
            return "Add the missing value."
        case "extra_forbidden":
            return "Remove it, or check its spelling."
        case "json_invalid":
            return "Send one JSON document in UTF-8, without NaN, Infinity or half surrogates."
        case _:
            return "Correct the value. The accepted values are in /api/v1/openapi.json."


async def _handle_http_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if isinstance(error, ProblemError):
        return build_problem_response(
            error.status_code,
            error.code,
            error.detail,
            field=error.field,
            remedy=error.remedy,
            headers=error.headers,
        )
    code = HTTPStatus(error.status_code).phrase.lower().replace(" ", "_")
    return build_problem_response(error.status_code, code, error.detail, headers=error.headers)


def _respond_internal_error(scope: Scope, error: Exception) -> Response:
    log.error("%s %s failed", scope["method"], hide_token(scope["path"]), exc_info=error)
    return build_problem_response(
        500, "internal", "An internal error occurred.", remedy="The server log has the details."
    )


class UnhandledErrorMiddleware:
    """Innermost middleware: turns an unhandled error into a 500, unless the response has already begun."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        begun = False

        async def noticed(message: Message) -> None:
            nonlocal begun
            begun = begun or message["type"] == "http.response.start"
            await send(message)

        try:
            await self.app(scope, receive, noticed)
        except ClientDisconnect:
            return
        except Exception as error:
            if begun or scope["type"] != "http":
                raise
            await _respond_internal_error(scope, error)(scope, receive, send)
