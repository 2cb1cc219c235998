"""Record a trace span for each request with method, route and status, without any user content.

The framework's own instrumentation would record addresses with their queries: searches, and tokens of login links.
"""

from typing import Any

from opentelemetry.trace import SpanKind
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from offing.telemetry.tracing import continue_trace, mark_failed, open_span

API_PREFIX = "/api/v1"


class TracingMiddleware:
    """Outermost middleware. It continues the caller's trace if the request names one."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        method = scope["method"] if scope["method"] in KNOWN_METHODS else "_OTHER"
        status = 0

        async def noticed(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        attributes = {"http.request.method": method}
        parent = Headers(scope=scope).get("traceparent")
        with continue_trace(parent), open_span(method, attributes, SpanKind.SERVER) as current:
            await self.app(scope, receive, noticed)
            route = find_route_pattern(scope)
            current.update_name(f"{method} {route}" if route else method)
            current.set_attribute("http.route", route)
            current.set_attribute("http.response.status_code", status)
            if status >= 500:
                mark_failed(current, str(status))


KNOWN_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


def find_route_pattern(scope: Scope) -> str:
    """Return the pattern of the route that answered.

    Empty means that no route answered or that it was the web UI.
    """
    route: Any = scope.get("route")
    pattern: str = getattr(route, "path_format", "")
    # A route knows the prefix of its own router, but not the prefix under which that router was included.
    return f"{API_PREFIX}{pattern}" if pattern and scope["path"].startswith(f"{API_PREFIX}/") else pattern
