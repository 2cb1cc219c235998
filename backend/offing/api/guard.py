"""What holds for every request, whichever route it is for: who it may be addressed to, where a write may come from,
and the headers of every answer.

Pure ASGI. It reads the path only to refuse NUL characters: who may do what is decided by the routers' dependencies, so
no odd Host header or path can talk its way around them.
"""

import ipaddress
import re
from collections.abc import Iterable

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from offing.api.problems import problem

LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]"})

SAFE = frozenset({"GET", "HEAD", "OPTIONS"})

AUTHORITY = re.compile(r"(?P<host>\[[0-9a-f:.]+\]|[0-9a-z](?:[0-9a-z.-]{0,252}[0-9a-z])?)(?::\d{1,5})?")
"""A host with an optional port, and nothing else: no user, path, query, space or percent sign."""

CONTENT_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self'; "
    "font-src 'self'; manifest-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'; "
    "require-trusted-types-for 'script'"
)

HEADERS = {
    "Content-Security-Policy": CONTENT_POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Frame-Options": "DENY",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}


def host_of(authority: str) -> str | None:
    """The host of `host[:port]`, in lower case. None: it is not one."""
    found = AUTHORITY.fullmatch(authority.lower())
    return found["host"] if found else None


def is_loopback(host: str) -> bool:
    """Whether a server bound to `host` is reachable from this machine alone."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def allowed_hosts(bound: str, configured: Iterable[str] = ()) -> frozenset[str]:
    """Names that a request may be addressed to: loopback, what the operator names, and the address bound to."""
    named = {h.strip().lower() for h in configured} | {bound.lower() if ":" not in bound else f"[{bound.lower()}]"}
    return LOOPBACK | {h for h in named if h and h not in ("0.0.0.0", "[::]")}


class Guard:
    """Turns away requests for other hosts and writes from other sites, and adds the security headers."""

    def __init__(self, app: ASGIApp, hosts: frozenset[str]) -> None:
        self.app = app
        self.hosts = hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        refused = self._refusal(scope)
        await (refused or self.app)(scope, receive, with_headers)

    def _refusal(self, scope: Scope) -> ASGIApp | None:
        headers = Headers(scope=scope)
        named = headers.getlist("host")
        if len(named) != 1 or host_of(named[0]) not in self.hosts:
            return problem(
                421,
                "unknown_host",
                "This server does not answer to that Host.",
                remedy="Use localhost, or name the host in OFFING_ALLOWED_HOSTS.",
            )
        if "\0" in scope["path"] or b"%00" in scope.get("query_string", b""):
            return problem(422, "invalid_input", "The address contains a NUL character.", remedy="Remove it.")
        if scope["method"] not in SAFE and not _same_origin(scope, headers, named[0]):
            return problem(
                403,
                "foreign_origin",
                "A page of another origin may not change anything here.",
                remedy="Write from the page itself, or with an API key and no Origin header.",
            )
        return None


def _same_origin(scope: Scope, headers: Headers, host: str) -> bool:
    """Browsers say where a write comes from; programs need not."""
    origin = headers.get("origin")
    if origin is not None and origin.lower() not in (f"http://{host.lower()}", f"https://{host.lower()}"):
        return False
    return headers.get("sec-fetch-site", "same-origin") in ("same-origin", "none")
