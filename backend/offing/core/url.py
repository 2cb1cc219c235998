"""Strict parser of URLs. A URL that two programs could resolve to different hosts is rejected.

The functions are pure: they resolve no name and open no connection.
"""

import re
import unicodedata
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from urllib.parse import quote, urljoin

import idna

MAX_URL_CHARS = 2_048
"""Maximum number of code points of a URL."""
DEFAULT_PORTS = {"http": 80, "https": 443}

_PARTS = re.compile(r"(https?)://([^/?#]*)([^?#]*)(\?[^#]*)?(#.*)?", re.IGNORECASE | re.DOTALL)
_PORT = re.compile(r"[1-9][0-9]{0,4}")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*", re.IGNORECASE)
_LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?")
_SAFE_CHARS = "%/:@!$&'()*+,;=~-._?[]"


@dataclass(frozen=True, slots=True)
class InvalidUrl:
    """A URL that is rejected. `problem` gives the reason and the fix."""

    problem: str


@dataclass(frozen=True, slots=True)
class ParsedUrl:
    """A parsed URL."""

    scheme: str
    host: str
    """Host name in lower-case ASCII without its last dot, or an IP address without brackets."""
    port: int
    path: str
    """Path with query, percent-encoded. It begins with `/`."""
    address: IPv4Address | IPv6Address | None
    """IP address of the host. `None` means that the host is a name."""

    @property
    def authority(self) -> str:
        """Host and port for the Host header. The default port of the scheme is left out."""
        host = f"[{self.host}]" if isinstance(self.address, IPv6Address) else self.host
        return host if self.port == DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def url(self) -> str:
        return f"{self.scheme}://{self.authority}{self.path}"


def parse_url(text: str) -> ParsedUrl | InvalidUrl:
    """Parse an absolute HTTP or HTTPS URL. Its fragment is dropped."""
    if len(text) > MAX_URL_CHARS:
        return InvalidUrl(f"The address is longer than {MAX_URL_CHARS} characters.")
    if any(c.isspace() or c == "\\" or unicodedata.category(c) in ("Cc", "Cf", "Cs") for c in text):
        return InvalidUrl("The address has spaces, backslashes or control characters in it; percent-encode them.")
    match = _PARTS.fullmatch(text)
    if match is None:
        return InvalidUrl("Only addresses that begin with http:// or https:// can be fetched.")
    scheme, authority, path, query = match[1].lower(), match[2], match[3] or "/", match[4] or ""
    parsed = _parse_authority(authority, scheme)
    if isinstance(parsed, InvalidUrl):
        return parsed
    host, port, address = parsed
    return ParsedUrl(scheme, host, port, quote(path + query, safe=_SAFE_CHARS), address)


def resolve_redirect(base: ParsedUrl, location: str) -> ParsedUrl | InvalidUrl:
    """Return the target of a redirect from `base`. A redirect from HTTPS to HTTP is invalid."""
    if any(c.isspace() or c == "\\" for c in location):
        return InvalidUrl("It redirects to an address with spaces or backslashes in it.")
    there = parse_url(urljoin(base.url, location))
    if isinstance(there, ParsedUrl) and base.scheme == "https" and there.scheme == "http":
        return InvalidUrl(f"It redirects from https to http, at {there.host}.")
    return there


def _parse_authority(authority: str, scheme: str) -> tuple[str, int, IPv4Address | IPv6Address | None] | InvalidUrl:
    if "@" in authority:
        return InvalidUrl("The address has a user name in it; leave it out.")
    if "%" in authority:
        return InvalidUrl("The host has percent signs in it; write it plainly.")
    bracketed = re.fullmatch(r"\[([0-9a-fA-F:.]+)\](?::(.*))?", authority)
    host, port = (bracketed[1], bracketed[2]) if bracketed else _split_port(authority)
    if port is not None and (not _PORT.fullmatch(port) or int(port) > 65_535):
        return InvalidUrl("The port is not a number from 1 to 65535.")
    number = DEFAULT_PORTS[scheme] if port is None else int(port)
    if bracketed:
        return _parse_ipv6(host, number)
    return _parse_host_name(host, number)


def _split_port(authority: str) -> tuple[str, str | None]:
    host, colon, port = authority.partition(":")
    return host, port if colon else None


def _parse_ipv6(host: str, port: int) -> tuple[str, int, IPv6Address] | InvalidUrl:
    try:
        address = IPv6Address(host)
    except AddressValueError:
        return InvalidUrl("The host is no IPv6 address.")
    return str(address), port, address


def _parse_host_name(host: str, port: int) -> tuple[str, int, IPv4Address | None] | InvalidUrl:
    name = _to_ascii(host)
    if isinstance(name, InvalidUrl):
        return name
    labels = name.split(".")
    if not _NUMBER.fullmatch(labels[-1]):
        return name, port, None
    try:
        return name, port, IPv4Address(name)
    except AddressValueError:
        return InvalidUrl("The host is a number, and not an address in four parts such as 192.0.2.1.")


def _to_ascii(host: str) -> str | InvalidUrl:
    """Return a host name in lower case as A-labels, without the last dot."""
    problem = InvalidUrl(f"{host[:80]!r} is no host name.")
    if any(not c.isascii() and c.isnumeric() for c in host):
        return InvalidUrl("The host has digits in it that are not 0 to 9.")
    name = host.removesuffix(".").lower()
    if not name.isascii():
        try:
            name = idna.encode(name).decode("ascii")
        except idna.IDNAError:
            return problem
    if len(name) > 253 or not all(_LABEL.fullmatch(label) for label in name.split(".")):
        return problem
    return name
