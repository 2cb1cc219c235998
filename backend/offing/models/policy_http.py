"""HTTP requests to a policy server over TCP or a Unix socket.

They return the body of a response or an attempt failure and are never retried. Each request has its
own connection, so any number of runs can send requests concurrently.
"""

import asyncio
import re
import ssl
from datetime import UTC, datetime
from functools import cache
from typing import Any

import httpx
import orjson

from offing.core.model import FailureKind
from offing.core.step import shorten_line
from offing.models.credentials import EngineEndpoint
from offing.models.redirects import render_redirect_error
from offing.models.retry import parse_retry_after
from offing.models.role_call import AttemptFailure
from offing.telemetry.redaction import redact

CONNECT_TIMEOUT_SECONDS = 5.0

UNIX_SCHEME = "unix://"

_TOO_LONG = re.compile(r"context[ _]length|exceeds? the context|maximum model length|max_model_len", re.IGNORECASE)


async def post_json(
    endpoint: EngineEndpoint, path: str, body: dict[str, Any], timeout_seconds: float
) -> bytes | AttemptFailure:
    """Send a JSON body and return the body of a successful response.

    `body["model"]` is named if the server reports that it is missing.
    """
    return await _send_request(endpoint, "POST", path, orjson.dumps(body), str(body.get("model", "")), timeout_seconds)


async def get_json(endpoint: EngineEndpoint, path: str, timeout_seconds: float) -> bytes | AttemptFailure:
    """Send a GET request and return the body of a successful response."""
    return await _send_request(endpoint, "GET", path, b"", "", timeout_seconds)


async def _send_request(
    endpoint: EngineEndpoint, method: str, path: str, content: bytes, model: str, timeout_seconds: float
) -> bytes | AttemptFailure:
    try:
        async with asyncio.timeout(timeout_seconds), _build_client(endpoint) as client:
            response = await client.request(method, path, content=content, headers=_build_headers(endpoint))
    except TimeoutError:
        return AttemptFailure(FailureKind.TIMEOUT, f"No complete response within {timeout_seconds:g} s.")
    except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
        reason = redact(str(error)) or type(error).__name__
        return AttemptFailure(
            FailureKind.OVERLOADED, f"The policy engine does not respond: {shorten_line(reason, 200)}"
        )
    if response.is_success:
        return response.content
    if response.is_redirect:
        return AttemptFailure(FailureKind.BAD_REQUEST, render_redirect_error(response))
    return _failure_from_response(response, model)


def _build_client(endpoint: EngineEndpoint) -> httpx.AsyncClient:
    limits = httpx.Timeout(None, connect=CONNECT_TIMEOUT_SECONDS)
    socket = endpoint.api_base.removeprefix(UNIX_SCHEME) if endpoint.api_base.startswith(UNIX_SCHEME) else None
    base = "http://engine" if socket else endpoint.api_base.rstrip("/").removesuffix("/v1")
    transport = httpx.AsyncHTTPTransport(uds=socket, verify=_ssl_context())
    return httpx.AsyncClient(
        transport=transport, base_url=base, timeout=limits, trust_env=False, follow_redirects=False
    )


@cache
def _ssl_context() -> ssl.SSLContext:
    """Loaded once, because it takes milliseconds."""
    return ssl.create_default_context()


def _build_headers(endpoint: EngineEndpoint) -> dict[str, str]:
    key = {"authorization": f"Bearer {endpoint.api_key}"} if endpoint.api_key else {}
    return {"content-type": "application/json", **key}


def _failure_from_response(response: httpx.Response, model: str) -> AttemptFailure:
    message, param = _parse_error(response)
    kind = _classify_failure(
        response.status_code, message, parameter=param == "model" or (bool(model) and model in message)
    )
    after = parse_retry_after(response.headers.get("retry-after"), datetime.now(UTC))
    line = message.strip().splitlines()[0] if message.strip() else f"status {response.status_code}"
    return AttemptFailure(kind, shorten_line(redact(line), 300), after)


def _parse_error(response: httpx.Response) -> tuple[str, str]:
    """Return the message of an error and the parameter that it is about."""
    try:
        body: Any = orjson.loads(response.content)
    except ValueError:
        return response.text, ""
    match body:
        case {"error": {"message": str(message), **more}} | {"message": str(message), **more}:
            return message, str(more.get("param") or "")
        case {"detail": detail} | {"error": detail}:
            return str(detail), ""
        case _:
            return response.text, ""


def _classify_failure(status: int, message: str, *, parameter: bool) -> FailureKind:
    match status:
        case 401 | 403:
            return FailureKind.AUTHENTICATION_FAILED
        case 404 if parameter:
            return FailureKind.UNKNOWN_VERSION
        case 429:
            return FailureKind.RATE_LIMITED
        case 400 | 413 | 422 if _TOO_LONG.search(message):
            return FailureKind.CONTEXT_TOO_LONG
        case 408 | 409 | 425:
            return FailureKind.OVERLOADED
        case _:
            return FailureKind.OVERLOADED if status >= 500 else FailureKind.BAD_REQUEST
