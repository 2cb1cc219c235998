"""One request to a policy server over TCP or a unix socket: the response's bytes, or a typed refusal. Never retries.

The only home of what its statuses mean. A connection serves one request, so nothing outlives it, and any number of runs
can ask at once.
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
from offing.core.step import shortened
from offing.models.credentials import Destination
from offing.models.redirects import redirect_message
from offing.models.retry import retry_after_seconds
from offing.models.role_call import Refusal
from offing.telemetry.redaction import redact

CONNECT_SECONDS = 5.0

UNIX = "unix://"

_TOO_LONG = re.compile(r"context[ _]length|exceeds? the context|maximum model length|max_model_len", re.IGNORECASE)


async def post(to: Destination, path: str, body: dict[str, Any], seconds: float) -> bytes | Refusal:
    """The body of a successful response. `body["model"]`: what is missing when the server says that something is."""
    return await _answer(to, "POST", path, orjson.dumps(body), str(body.get("model", "")), seconds)


async def get(to: Destination, path: str, seconds: float) -> bytes | Refusal:
    """The body of a successful response to a question without one."""
    return await _answer(to, "GET", path, b"", "", seconds)


async def _answer(
    to: Destination, method: str, path: str, content: bytes, model: str, seconds: float
) -> bytes | Refusal:
    try:
        async with asyncio.timeout(seconds), _client(to) as client:
            response = await client.request(method, path, content=content, headers=_headers(to))
    except TimeoutError:
        return Refusal(FailureKind.TIMEOUT, f"No whole answer within {seconds:g} s.")
    except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
        reason = redact(str(error)) or type(error).__name__
        return Refusal(FailureKind.OVERLOADED, f"The policy engine does not answer: {shortened(reason, 200)}")
    if response.is_success:
        return response.content
    if response.is_redirect:
        return Refusal(FailureKind.BAD_REQUEST, redirect_message(response))
    return _refusal(response, model)


def _client(to: Destination) -> httpx.AsyncClient:
    limits = httpx.Timeout(None, connect=CONNECT_SECONDS)
    socket = to.api_base.removeprefix(UNIX) if to.api_base.startswith(UNIX) else None
    base = "http://engine" if socket else to.api_base.rstrip("/").removesuffix("/v1")
    transport = httpx.AsyncHTTPTransport(uds=socket, verify=_certificates())
    return httpx.AsyncClient(
        transport=transport, base_url=base, timeout=limits, trust_env=False, follow_redirects=False
    )


@cache
def _certificates() -> ssl.SSLContext:
    """Read once: it takes milliseconds."""
    return ssl.create_default_context()


def _headers(to: Destination) -> dict[str, str]:
    key = {"authorization": f"Bearer {to.api_key}"} if to.api_key else {}
    return {"content-type": "application/json", **key}


def _refusal(response: httpx.Response, model: str) -> Refusal:
    message, param = _told(response)
    kind = _kind(response.status_code, message, named=param == "model" or (bool(model) and model in message))
    after = retry_after_seconds(response.headers.get("retry-after"), datetime.now(UTC))
    line = message.strip().splitlines()[0] if message.strip() else f"status {response.status_code}"
    return Refusal(kind, shortened(redact(line), 300), after)


def _told(response: httpx.Response) -> tuple[str, str]:
    """The error's words, and the parameter that it is about."""
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


def _kind(status: int, message: str, *, named: bool) -> FailureKind:
    match status:
        case 401 | 403:
            return FailureKind.REFUSED_KEY
        case 404 if named:
            return FailureKind.UNKNOWN_VERSION
        case 429:
            return FailureKind.RATE_LIMITED
        case 400 | 413 | 422 if _TOO_LONG.search(message):
            return FailureKind.CONTEXT_TOO_LONG
        case 408 | 409 | 425:
            return FailureKind.OVERLOADED
        case _:
            return FailureKind.OVERLOADED if status >= 500 else FailureKind.BAD_REQUEST
