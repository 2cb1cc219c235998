"""Every error as RFC 9457 problem details, naming the field and the remedy where there are any.

The only home of the mapping from what can go wrong to a status. Nothing of the inside reaches the wire: an error that
nobody raised on purpose is logged whole and answered with a bare 500.
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

from offing.api.schemas import Problem
from offing.core.errors import Conflict, InvalidInput, NotFound, OffingError, Unauthorised, Unavailable

log = logging.getLogger(__name__)

MEDIA_TYPE = "application/problem+json"

STATUS: dict[type[OffingError], int] = {
    InvalidInput: 422,
    NotFound: 404,
    Conflict: 409,
    Unauthorised: 401,
    Unavailable: 503,
}

REMEDIES = {
    401: "Send `Authorization: Bearer <key>` (`offing key create NAME` makes one), or open a new login link.",
    404: "Check the address; the records of other tenants are not shown.",
    405: "See the Allow header.",
    413: "Send less: 1 MB for JSON; 25 MB a file and 256 MB a request for uploads.",
    429: "Try again in a few seconds.",
    503: "Try again in a few seconds.",
}


class Refusal(HTTPException):
    """A request that is turned away at the edge. `code` is stable and public."""

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


def problem(
    status: int,
    code: str,
    detail: str,
    *,
    field: str | None = None,
    remedy: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """A problem response. `code` makes its `type`, a name and not an address to fetch."""
    body = Problem(
        type=f"urn:offing:problem:{code}",
        title=HTTPStatus(status).phrase,
        status=status,
        detail=detail,
        field=field,
        remedy=remedy or REMEDIES.get(status),
    )
    extra = {"WWW-Authenticate": "Bearer"} if status == 401 else {"Retry-After": "2"} if status in (429, 503) else {}
    return Response(
        orjson.dumps(body.model_dump()), status, media_type=MEDIA_TYPE, headers={**extra, **(headers or {})}
    )


def install(app: FastAPI) -> None:
    """Answer every kind of error of this app with a problem."""
    app.add_exception_handler(OffingError, _on_purpose)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)


async def _on_purpose(request: Request, error: Exception) -> Response:
    assert isinstance(error, OffingError)
    status = next((s for kind, s in STATUS.items() if isinstance(error, kind)), 500)
    if status == 500:
        return _surprise(request.scope, error)
    if isinstance(error, InvalidInput):
        return problem(status, error.code, error.problem, field=error.field, remedy=error.remedy)
    if isinstance(error, Conflict):
        return problem(status, error.code, error.problem, remedy=error.remedy)
    return problem(status, error.code, str(error))


async def _invalid(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    faults: Sequence[Any] = error.errors()
    first = faults[0]
    field = field_of(first["loc"])
    others = sorted({field_of(f["loc"]) for f in faults[1:6]} - {field})
    detail = f"{field}: {first['msg']}" + (f". Also wrong: {', '.join(others)}" if others else "")
    return problem(422, "invalid_input", printable(detail), field=printable(field), remedy=_remedy(first))


def field_of(location: Sequence[str | int]) -> str:
    """`budget.turns` for a body's field; the bare name for a query, path or header parameter; else where it was."""
    origin, *rest = location or ("body",)
    at_byte = origin == "body" and len(rest) == 1 and isinstance(rest[0], int)
    return str(origin) if at_byte or not rest else ".".join(map(str, rest))


def printable(text: str) -> str:
    """Text of a client's making as it may be sent back: short, and without what breaks encoders and terminals."""
    return "".join(c if c.isprintable() else "�" for c in text.encode("utf-8", "replace").decode())[:400]


def _remedy(fault: Mapping[str, Any]) -> str:
    match fault["type"]:
        case "missing":
            return "Send it."
        case "extra_forbidden":
            return "Leave it out, or check its spelling."
        case "json_invalid":
            return "Send one JSON document in UTF-8, without NaN, Infinity or half surrogates."
        case _:
            return "Correct it; the accepted values are in /api/v1/openapi.json."


async def _http(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if isinstance(error, Refusal):
        return problem(
            error.status_code,
            error.code,
            error.detail,
            field=error.field,
            remedy=error.remedy,
            headers=error.headers,
        )
    code = HTTPStatus(error.status_code).phrase.lower().replace(" ", "_")
    return problem(error.status_code, code, error.detail, headers=error.headers)


def _surprise(scope: Scope, error: Exception) -> Response:
    log.error("%s %s failed", scope["method"], scope["path"], exc_info=error)
    return problem(500, "internal", "Something unforeseen went wrong here.", remedy="It is in the server's log.")


class Surprises:
    """Innermost middleware: an error that no handler knows becomes a 500, unless the answer has already begun."""

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
            await _surprise(scope, error)(scope, receive, send)
