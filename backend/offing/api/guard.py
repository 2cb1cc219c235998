"""Enforce allowed hosts, the origin of writes and security headers for every request.

This is pure ASGI. It reads the path only to reject NUL characters. The dependencies of the routers decide
who may do what, so an unusual Host header or path cannot bypass them.
"""

import re
from collections.abc import Callable, Iterable

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from offing.api.problems import build_problem_response
from offing.api.shared_headers import PRIVATE_PAGE_HEADERS, is_shared_path

LOOPBACK_HOSTS = frozenset({"localhost", "127.0.0.1", "[::1]"})

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})

AUTHORITY_PATTERN = re.compile(r"(?P<host>\[[0-9a-f:.]+\]|[0-9a-z](?:[0-9a-z.-]{0,252}[0-9a-z])?)(?::\d{1,5})?")
"""A host with an optional port, without a user, path, query, space or percent sign."""

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self'; "
    "font-src 'self'; manifest-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'; "
    "require-trusted-types-for 'script'"
)

OWN_CONTENT_POLICY = "offing.own_content_policy"
"""The key of a request's scope that says that the answer names its content security policy itself, or has none."""

SECURITY_HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Frame-Options": "DENY",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}


_RAW_SECURITY_HEADERS = [(name.lower().encode(), value.encode()) for name, value in SECURITY_HEADERS.items()]


def parse_host(authority: str) -> str | None:
    """Return the host of `host[:port]` in lower case, or `None` if the text is not one."""
    match = AUTHORITY_PATTERN.fullmatch(authority.lower())
    return match["host"] if match else None


def list_allowed_hosts(bound: str, configured: Iterable[str] = ()) -> frozenset[str]:
    """Return the hosts that requests may name: loopback, the operator's and the bound address."""
    named = {h.strip().lower() for h in configured} | {bound.lower() if ":" not in bound else f"[{bound.lower()}]"}
    return LOOPBACK_HOSTS | {h for h in named if h and h not in ("0.0.0.0", "[::]")}


class RequestGuard:
    """ASGI middleware that rejects unknown hosts and writes from other sites, and adds security headers."""

    def __init__(
        self,
        app: ASGIApp,
        hosts: frozenset[str],
        cors_prefix: str = "",
        allows_origin: Callable[[str], bool] = lambda _: False,
    ) -> None:
        """`allows_origin` decides which pages of other origins may call what is under `cors_prefix`."""
        self.app = app
        self.hosts = hosts
        self._cors_prefix, self._allows_origin = cors_prefix, allows_origin

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket" and not self._may_connect(scope):
            await send({"type": "websocket.close", "code": 4403})
            return
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                _add_security_headers(message, has_own_policy=bool(scope.get(OWN_CONTENT_POLICY)))
                if is_shared_path(scope["path"]):
                    MutableHeaders(scope=message).update(PRIVATE_PAGE_HEADERS)
            await send(message)

        rejection = self._find_problem(scope)
        await (rejection or self.app)(scope, receive, with_headers)

    def _may_connect(self, scope: Scope) -> bool:
        """Return whether a WebSocket comes from no page, or from one of this origin: browsers send cookies along."""
        headers = Headers(scope=scope)
        named = headers.getlist("host")
        return (
            len(named) == 1
            and parse_host(named[0]) in self.hosts
            and "\0" not in scope["path"]
            and _is_same_origin(scope, headers, named[0])
        )

    def _find_problem(self, scope: Scope) -> ASGIApp | None:
        headers = Headers(scope=scope)
        named = headers.getlist("host")
        if len(named) != 1 or parse_host(named[0]) not in self.hosts:
            return build_problem_response(
                421,
                "unknown_host",
                "This server does not accept requests for this Host.",
                remedy="Use localhost, or add the host to OFFING_ALLOWED_HOSTS.",
            )
        if "\0" in scope["path"] or b"%00" in scope.get("query_string", b""):
            return build_problem_response(
                422, "invalid_input", "The address contains a NUL character.", remedy="Remove it."
            )
        if scope["method"] not in SAFE_METHODS and not (
            _is_same_origin(scope, headers, named[0]) or self._is_allowed_origin(scope, headers)
        ):
            return build_problem_response(
                403,
                "foreign_origin",
                "Pages of other origins cannot make changes.",
                remedy="Use the web UI, or an API key without an Origin header.",
            )
        return None

    def _is_allowed_origin(self, scope: Scope, headers: Headers) -> bool:
        """Return whether a write comes from another origin that the operator allows there."""
        is_below = bool(self._cors_prefix) and scope["path"].startswith(f"{self._cors_prefix}/")
        return is_below and self._allows_origin(headers.get("origin", ""))


def _add_security_headers(message: Message, *, has_own_policy: bool) -> None:
    """Add those that the response does not set itself. The framework's own type of headers would search per header."""
    present = {name.lower() for name, _ in message["headers"]}
    if has_own_policy:
        present.add(b"content-security-policy")
    message["headers"] = [*message["headers"], *(one for one in _RAW_SECURITY_HEADERS if one[0] not in present)]


def _is_same_origin(scope: Scope, headers: Headers, host: str) -> bool:
    """Return whether a write comes from the web UI itself.

    Only browsers send the headers with its origin.
    """
    origin = headers.get("origin")
    if origin is not None and origin.lower() not in (f"http://{host.lower()}", f"https://{host.lower()}"):
        return False
    return headers.get("sec-fetch-site", "same-origin") in ("same-origin", "none")
