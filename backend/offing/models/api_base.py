"""API base URLs as values, and whether one covers another. Nothing is resolved.

Parsing is strict, because servers and client libraries interpret unusual spellings differently. An
address is compared in exactly the form that is sent.
"""

import re
from dataclasses import dataclass
from ipaddress import ip_address
from urllib.parse import urlsplit

_SEGMENT = re.compile(r"(?!\.+$)[A-Za-z0-9._~+=:@,$-]+")
"""No segments of dots only, which lead upwards, and no encoded characters."""


@dataclass(frozen=True, slots=True)
class ApiBase:
    """`scheme://host:port/path`."""

    scheme: str
    host: str
    """Lower case."""
    port: int
    path: tuple[str, ...] = ()
    """Path segments, without the empty one after a trailing slash."""

    def covers(self, other: "ApiBase") -> bool:
        """Return whether `other` is on the same server and its path is equal to this one or below it."""
        here, there = (self.scheme, self.host, self.port), (other.scheme, other.host, other.port)
        return here == there and other.path[: len(self.path)] == self.path

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return "/".join((f"{self.scheme}://{host}:{self.port}", *self.path))


def parse_api_base(text: str) -> ApiBase | None:
    """Parse an API base.

    `None` means that the text is not an http or https URL, or has credentials, a query or an ambiguous
    path.
    """
    if not text.isascii() or re.search(r"[\s\x00-\x1f\x7f\\?#]", text):
        return None
    try:
        parts = urlsplit(text)
        port = parts.port if parts.port is not None else (443 if parts.scheme == "https" else 80)
    except ValueError:
        return None
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username is not None:
        return None
    path = tuple(parts.path.removeprefix("/").removesuffix("/").split("/")) if parts.path.strip("/") else ()
    if not all(_SEGMENT.fullmatch(segment) for segment in path):
        return None
    return ApiBase(parts.scheme, parts.hostname.lower(), port, path)


def is_loopback(host: str) -> bool:
    """Return whether `host` is a loopback address or localhost."""
    if host.lower() == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
