"""A span for each request: method, route and status, and nothing that a person wrote.

Our own instead of the framework's, which records addresses with their queries: searches, and the tokens of login links.
"""

from typing import Any

from opentelemetry.trace import SpanKind
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from offing.telemetry.tracing import continued, mark_failed, span

PREFIX = "/api/v1"


class Traced:
    """Outermost middleware. Continues the caller's trace where the request names one."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        method = scope["method"] if scope["method"] in METHODS else "_OTHER"
        status = 0

        async def noticed(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        given = {"http.request.method": method}
        parent = Headers(scope=scope).get("traceparent")
        with continued(parent), span(method, given, SpanKind.SERVER) as current:
            await self.app(scope, receive, noticed)
            route = route_of(scope)
            current.update_name(f"{method} {route}" if route else method)
            current.set_attribute("http.route", route)
            current.set_attribute("http.response.status_code", status)
            if status >= 500:
                mark_failed(current, str(status))


METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


def route_of(scope: Scope) -> str:
    """The pattern of the route that answered. Empty: none did, or the page."""
    route: Any = scope.get("route")
    pattern: str = getattr(route, "path_format", "")
    # A route knows its own router's prefix, but not the one under which that router was included.
    return f"{PREFIX}{pattern}" if pattern and scope["path"].startswith(f"{PREFIX}/") else pattern
