"""A log of requests to LangGraph's API with the headers that a project chooses."""

import time
from collections.abc import Callable

import structlog
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from offing.core.header_patterns import HeaderPatterns
from offing.telemetry.redaction import may_be_secret

log = structlog.get_logger()


class RequestLog:
    """ASGI middleware that logs each request when it is answered. Headers that carry secrets are left out."""

    def __init__(self, app: ASGIApp, patterns: HeaderPatterns, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._app, self._patterns, self._monotonic = app, patterns, monotonic

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started, status = self._monotonic(), 0

        async def noticed(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, noticed)
        finally:
            milliseconds = round((self._monotonic() - started) * 1000)
            headers = {
                name: value
                for name, value in Headers(scope=scope).items()
                if self._patterns.matches(name) and not may_be_secret(name, value)
            }
            path = scope["path"].removeprefix(scope["root_path"])
            log.info("request", method=scope["method"], path=path, status=status, ms=milliseconds, headers=headers)
