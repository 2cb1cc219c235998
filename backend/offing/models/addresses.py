"""An API base as a value, and whether one lies within another. Pure; resolves nothing.

Strict, since servers and client libraries read the odd spellings differently: an address is compared as it is sent.
"""

import re
from dataclasses import dataclass
from ipaddress import ip_address
from urllib.parse import urlsplit

_SEGMENT = re.compile(r"(?!\.+$)[A-Za-z0-9._~+=:@,$-]+")
"""No dots alone, which lead upwards, and nothing encoded."""


@dataclass(frozen=True, slots=True)
class ApiBase:
    """`scheme://host:port/path`."""

    scheme: str
    host: str
    """In lower case."""
    port: int
    path: tuple[str, ...] = ()
    """Segments; the empty one after a last slash is left out."""

    def covers(self, other: "ApiBase") -> bool:
        """Whether `other` is at the same server, and its path is this one or below it."""
        here, there = (self.scheme, self.host, self.port), (other.scheme, other.host, other.port)
        return here == there and other.path[: len(self.path)] == self.path

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return "/".join((f"{self.scheme}://{host}:{self.port}", *self.path))


def parse_api_base(text: str) -> ApiBase | None:
    """None: no http or https address, or one with credentials, a query, or a path that could be read in two ways."""
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
    """Whether `host` is this machine by number or as localhost."""
    if host.lower() == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
