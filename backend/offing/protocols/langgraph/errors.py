"""Errors as LangGraph's clients expect them: `{"detail": "one sentence"}`."""

import logging

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from langgraph.store.base import InvalidNamespaceError
from starlette.exceptions import HTTPException
from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocketClose

from offing.core.errors import Conflict, InvalidInput, NotFound, OffingError, Unauthorized, Unavailable
from offing.services.langgraph_auth import AccessDeniedError

log = logging.getLogger(__name__)

STATUS_BY_ERROR: dict[type[OffingError], int] = {
    InvalidInput: 422,
    NotFound: 404,
    Conflict: 409,
    Unauthorized: 401,
    Unavailable: 503,
}


class Unsupported(InvalidInput):
    """`Unsupported(field, why)`: a field or a value that LangGraph's server accepts and Offing does not."""

    def __init__(self, field: str, why: str) -> None:
        super().__init__(field, why, "Leave it out.")


def install_error_handlers(app: FastAPI) -> None:
    app.add_exception_handler(OffingError, _handle_offing_error)
    app.add_exception_handler(InvalidNamespaceError, _handle_invalid_namespace)
    app.add_exception_handler(RequestValidationError, _handle_validation_error)
    app.add_exception_handler(HTTPException, _handle_http_error)


def respond(status: int, detail: str) -> JSONResponse:
    clean = "".join(c if c.isprintable() else "�" for c in detail.encode("utf-8", "replace").decode())
    return JSONResponse({"detail": clean[:1000]}, status)


async def respond_anywhere(status: int, detail: str, scope: Scope, receive: Receive, send: Send) -> None:
    """Answer a request that no route answers. A WebSocket is closed."""
    if scope["type"] == "websocket":
        await WebSocketClose(1011 if status >= 500 else 1008)(scope, receive, send)
        return
    await respond(status, detail)(scope, receive, send)


async def _handle_offing_error(_: Request, error: Exception) -> JSONResponse:
    return respond_error(error)


def respond_error(error: Exception) -> JSONResponse:
    """Return the answer to a request that raised an error of Offing."""
    if isinstance(error, AccessDeniedError):
        return respond(error.status_code, error.detail or "Forbidden")
    status = next((code for kind, code in STATUS_BY_ERROR.items() if isinstance(error, kind)), 500)
    if status == 500:
        log.exception("a request of a LangGraph client failed", exc_info=error)
        return respond(500, "An internal error occurred. The log has its details.")
    return respond(status, str(error))


async def _handle_invalid_namespace(_: Request, error: Exception) -> JSONResponse:
    return respond_error(InvalidInput("namespace", str(error), "Use labels without periods, and not `langgraph`."))


async def _handle_validation_error(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    parts = [f"{'.'.join(str(one) for one in fault['loc'][1:]) or 'body'}: {fault['msg']}" for fault in error.errors()]
    return respond(422, "; ".join(parts[:5]))


async def _handle_http_error(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    response = respond(error.status_code, str(error.detail))
    for name, value in (error.headers or {}).items():
        response.headers[name] = value
    return response
