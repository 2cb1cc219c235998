"""A page by its address: connected where the guard says, redirects followed by hand, everything bounded.

The only home of how the web is asked. Sends no cookie, no credential and no referrer; takes no proxy from the
environment. What a page says is data for whoever asked: nothing here acts on it but its redirects.
"""

import asyncio
import ssl
import zlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from email.message import Message
from functools import partial
from http import HTTPStatus

import httpcore

from offing.web.connecting import Barred, GuardedNetwork
from offing.web.guard import Guard
from offing.web.pace import Pace
from offing.web.url import Refused, Target, followed, target_of

READABLE = frozenset(
    (
        "application/json",
        "application/pdf",
        "application/xhtml+xml",
        "application/xml",
        "text/csv",
        "text/html",
        "text/markdown",
        "text/plain",
        "text/xml",
    )
)
"""Media types that are taken; others are refused before their body is read."""

AGENT = "Offing/0.1 (research agent; fetches single pages that a person's question led to)"


@dataclass(frozen=True, slots=True)
class Limits:
    """Of one fetch, redirects included."""

    redirects: int = 5
    connect_seconds: float = 5.0
    seconds: float = 30.0
    body: int = 10_000_000
    """Bytes, unpacked."""
    ratio: int = 100
    """Unpacked bytes for each packed one."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """An answer with status 200."""

    url: str
    """Where it came from in the end."""
    media_type: str
    charset: str
    """As the server says. Empty: it does not."""
    body: bytes


@dataclass(slots=True)
class Fetcher:
    """Fetches pages. Use it as a context: `async with Fetcher(guard) as web`."""

    guard: Guard
    limits: Limits = Limits()
    trusted: ssl.SSLContext | None = None
    """Certificates. None: the usual ones."""
    pace: Pace | None = None
    """How often a site is asked. None: as often as pages are wanted."""
    _pool: httpcore.AsyncConnectionPool = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=self.trusted,
            max_connections=20,
            keepalive_expiry=5.0,
            network_backend=GuardedNetwork(self.guard),
        )

    async def __aenter__(self) -> "Fetcher":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._pool.aclose()

    async def fetch(self, url: str) -> Fetched | Refused:
        """A page that can be read, or why there is none."""
        try:
            async with asyncio.timeout(self.limits.seconds):
                return await self._followed(url)
        except TimeoutError:
            return Refused(f"The page did not arrive within {self.limits.seconds:g} seconds.")
        except Barred as barred:
            return barred.refused
        except (httpcore.TimeoutException, httpcore.NetworkError):
            return Refused("The server cannot be reached.")
        except httpcore.ProtocolError:
            return Refused("The server does not speak HTTP as it should.")
        except zlib.error:
            return Refused("The page is packed in a way that cannot be unpacked.")

    async def _followed(self, url: str) -> Fetched | Refused:
        target = target_of(url)
        for _ in range(self.limits.redirects + 1):
            if isinstance(target, Refused):
                return target
            found = await self._paced(target)
            if not isinstance(found, Target):
                return found
            target = found
        return Refused(f"It redirects more than {self.limits.redirects} times.")

    async def _paced(self, target: Target) -> Fetched | Refused | Target:
        if self.pace is None:
            return await self._asked(target)
        return await self.pace.paced(f"{target.host}:{target.port}", partial(self._asked, target))

    async def _asked(self, target: Target) -> Fetched | Refused | Target:
        """The page, or where it redirects to."""
        address = httpcore.URL(scheme=target.scheme, host=target.host, port=target.port, target=target.path)
        waits = self.limits.connect_seconds
        timeout = {"connect": waits, "pool": waits, "read": self.limits.seconds, "write": waits}
        async with self._pool.stream(
            "GET", address, headers=_headers(target), extensions={"timeout": timeout}
        ) as answer:
            said = _Said({name.lower(): value for name, value in answer.headers})
            if answer.status in (301, 302, 303, 307, 308):
                return followed(target, said.text(b"location"))
            if self.pace is not None and answer.status in (429, 503):
                self.pace.told(f"{target.host}:{target.port}", said.text(b"retry-after"))
            if answer.status != HTTPStatus.OK:
                return Refused(f"The server answers with status {answer.status}.")
            return await self._read(target, said, answer.aiter_stream())

    async def _read(self, target: Target, said: "_Said", parts: AsyncIterator[bytes]) -> Fetched | Refused:
        media, charset = said.type()
        if media not in READABLE:
            return Refused(f"It is {media or 'of no named type'}, which cannot be read here.")
        packing = said.text(b"content-encoding").lower()
        if packing not in ("", "identity", "gzip"):
            return Refused(f"It is packed as {packing[:40]}, which was not asked for.")
        body = await _unpacked(parts, self.limits, packed=packing == "gzip")
        return body if isinstance(body, Refused) else Fetched(target.url, media, charset, body)


@dataclass(frozen=True, slots=True)
class _Said:
    """An answer's headers."""

    headers: dict[bytes, bytes]

    def text(self, name: bytes) -> str:
        return self.headers.get(name, b"").decode("latin-1").strip()

    def type(self) -> tuple[str, str]:
        """Media type and charset, either of them empty where it is not said."""
        if b"content-type" not in self.headers:
            return "", ""
        message = Message()
        message["content-type"] = self.text(b"content-type")
        return message.get_content_type(), message.get_content_charset("")


def _headers(target: Target) -> list[tuple[str, str]]:
    accepted = ", ".join(sorted(READABLE - {"application/pdf"}))
    return [
        ("Host", target.authority),
        ("User-Agent", AGENT),
        ("Accept", f"{accepted}, application/pdf;q=0.9"),
        ("Accept-Encoding", "gzip"),
    ]


async def _unpacked(parts: AsyncIterator[bytes], limits: Limits, *, packed: bool) -> bytes | Refused:
    """At most `limits.body` bytes, and never more in memory than that and a part."""
    body, seen = bytearray(), 0
    unpack = zlib.decompressobj(wbits=31) if packed else None
    async for part in parts:
        seen += len(part)
        room = min(limits.body, seen * limits.ratio) + 1 - len(body)
        body += part if unpack is None else unpack.decompress(part, max(room, 1))
        if len(body) > limits.body:
            return Refused(f"The page is larger than {limits.body:,} bytes.")
        if unpack is not None and len(body) > seen * limits.ratio:
            return Refused(f"The page unpacks to more than {limits.ratio} times its size.")
    if unpack is not None and not unpack.eof:
        return Refused("The page ends before its end.")
    return bytes(body)
