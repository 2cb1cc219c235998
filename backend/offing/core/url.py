"""A web address as text, read once and strictly: whatever two readers could take for two different hosts is refused.

The only home of which spellings are accepted. Pure: looks up no name and opens no connection.
"""

import re
import unicodedata
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from urllib.parse import quote, urljoin

import idna

LONGEST = 2_048
"""Characters of an address."""
PORTS = {"http": 80, "https": 443}

_PARTS = re.compile(r"(https?)://([^/?#]*)([^?#]*)(\?[^#]*)?(#.*)?", re.IGNORECASE | re.DOTALL)
_PORT = re.compile(r"[1-9][0-9]{0,4}")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*", re.IGNORECASE)
_LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?")
_KEPT = "%/:@!$&'()*+,;=~-._?[]"


@dataclass(frozen=True, slots=True)
class Refused:
    """Why it is not asked, in words that tell what to do instead."""

    problem: str


@dataclass(frozen=True, slots=True)
class Target:
    """What is asked, and of whom."""

    scheme: str
    host: str
    """A name in ASCII, lower case and without its last dot, or an address without brackets."""
    port: int
    path: str
    """With the query, percent-encoded; begins with `/`."""
    address: IPv4Address | IPv6Address | None
    """Of a host that is one. None: it is a name."""

    @property
    def authority(self) -> str:
        """Host and port as the Host header has them; the scheme's own port is left out."""
        host = f"[{self.host}]" if isinstance(self.address, IPv6Address) else self.host
        return host if self.port == PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def url(self) -> str:
        return f"{self.scheme}://{self.authority}{self.path}"


def target_of(text: str) -> Target | Refused:
    """Read an absolute http(s) address; its fragment is dropped."""
    if len(text) > LONGEST:
        return Refused(f"The address is longer than {LONGEST} characters.")
    if any(c.isspace() or c == "\\" or unicodedata.category(c) in ("Cc", "Cf", "Cs") for c in text):
        return Refused("The address has spaces, backslashes or control characters in it; percent-encode them.")
    found = _PARTS.fullmatch(text)
    if found is None:
        return Refused("Only addresses that begin with http:// or https:// can be fetched.")
    scheme, authority, path, query = found[1].lower(), found[2], found[3] or "/", found[4] or ""
    place = _place(authority, scheme)
    if isinstance(place, Refused):
        return place
    host, port, address = place
    return Target(scheme, host, port, quote(path + query, safe=_KEPT), address)


def followed(target: Target, location: str) -> Target | Refused:
    """Where a redirect from `target` leads. From https never to http."""
    if any(c.isspace() or c == "\\" for c in location):
        return Refused("It redirects to an address with spaces or backslashes in it.")
    there = target_of(urljoin(target.url, location))
    if isinstance(there, Target) and target.scheme == "https" and there.scheme == "http":
        return Refused(f"It redirects from https to http, at {there.host}.")
    return there


def _place(authority: str, scheme: str) -> tuple[str, int, IPv4Address | IPv6Address | None] | Refused:
    if "@" in authority:
        return Refused("The address has a user name in it; leave it out.")
    if "%" in authority:
        return Refused("The host has percent signs in it; write it plainly.")
    bracketed = re.fullmatch(r"\[([0-9a-fA-F:.]+)\](?::(.*))?", authority)
    host, port = (bracketed[1], bracketed[2]) if bracketed else _split(authority)
    if port is not None and (not _PORT.fullmatch(port) or int(port) > 65_535):
        return Refused("The port is not a number from 1 to 65535.")
    number = PORTS[scheme] if port is None else int(port)
    if bracketed:
        return _v6(host, number)
    return _named(host, number)


def _split(authority: str) -> tuple[str, str | None]:
    host, colon, port = authority.partition(":")
    return host, port if colon else None


def _v6(host: str, port: int) -> tuple[str, int, IPv6Address] | Refused:
    try:
        address = IPv6Address(host)
    except AddressValueError:
        return Refused("The host is no IPv6 address.")
    return str(address), port, address


def _named(host: str, port: int) -> tuple[str, int, IPv4Address | None] | Refused:
    name = _ascii(host)
    if isinstance(name, Refused):
        return name
    labels = name.split(".")
    if not _NUMBER.fullmatch(labels[-1]):
        return name, port, None
    try:
        return name, port, IPv4Address(name)
    except AddressValueError:
        return Refused("The host is a number, and not an address in four parts such as 192.0.2.1.")


def _ascii(host: str) -> str | Refused:
    """Lower case, A-labels, without the last dot."""
    problem = Refused(f"{host[:80]!r} is no host name.")
    if any(not c.isascii() and c.isnumeric() for c in host):
        return Refused("The host has digits in it that are not 0 to 9.")
    name = host.removesuffix(".").lower()
    if not name.isascii():
        try:
            name = idna.encode(name).decode("ascii")
        except idna.IDNAError:
            return problem
    if len(name) > 253 or not all(_LABEL.fullmatch(label) for label in name.split(".")):
        return problem
    return name
