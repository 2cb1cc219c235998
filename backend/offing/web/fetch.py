"""Fetch a page by its URL: only from allowed addresses, with redirects followed here, and within limits.

It sends no cookie, no credential and no referrer, and uses no proxy from the environment. The content of a
page is untrusted data; only its redirects are followed.
"""

import asyncio
import ssl
import zlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from email.message import Message
from functools import partial
from http import HTTPStatus

import httpcore

from offing.web.guard import AddressGuard
from offing.web.guarded_network import AddressBlockedError, GuardedNetwork
from offing.web.rate_limiter import SiteRateLimiter
from offing.web.url import InvalidUrl, ParsedUrl, parse_url, resolve_redirect

READABLE_MEDIA_TYPES = frozenset(
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
"""Media types that are read. Others are rejected before their body is read."""

USER_AGENT = "Offing/0.1 (research agent; fetches single pages that a person's question led to)"


@dataclass(frozen=True, slots=True)
class FetchLimits:
    """Limits of one fetch, including redirects."""

    max_redirects: int = 5
    connect_timeout_seconds: float = 5.0
    timeout_seconds: float = 30.0
    max_body_bytes: int = 10_000_000
    """Maximum bytes of the unpacked body."""
    max_compression_ratio: int = 100
    """Maximum number of unpacked bytes per packed byte."""


@dataclass(frozen=True, slots=True)
class FetchedPage:
    """A response with status 200."""

    url: str
    """The final URL after redirects."""
    media_type: str
    charset: str
    """The charset that the server declares. Empty if it declares none."""
    body: bytes


@dataclass(slots=True)
class Fetcher:
    """Fetches pages. Use it as a context manager: `async with Fetcher(guard) as web`."""

    guard: AddressGuard
    limits: FetchLimits = FetchLimits()
    ssl_context: ssl.SSLContext | None = None
    """Certificates. `None` means those of the system."""
    rate_limiter: SiteRateLimiter | None = None
    """Limits the requests to each site. `None` means no limit."""
    _pool: httpcore.AsyncConnectionPool = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=self.ssl_context,
            max_connections=20,
            keepalive_expiry=5.0,
            network_backend=GuardedNetwork(self.guard),
        )

    async def __aenter__(self) -> "Fetcher":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._pool.aclose()

    async def fetch(self, url: str, find_problem: Callable[[ParsedUrl], str] | None = None) -> FetchedPage | InvalidUrl:
        """Return a page that can be read, or why there is none.

        `find_problem` explains why an address may not be requested, or returns an empty text. It is also asked about
        each address of a redirect. `None` means that every public address may be.
        """
        try:
            async with asyncio.timeout(self.limits.timeout_seconds):
                return await self._fetch_following_redirects(url, find_problem)
        except TimeoutError:
            return InvalidUrl(f"The page did not arrive within {self.limits.timeout_seconds:g} seconds.")
        except AddressBlockedError as blocked:
            return blocked.invalid_url
        except (httpcore.TimeoutException, httpcore.NetworkError):
            return InvalidUrl("The server cannot be reached.")
        except httpcore.ProtocolError:
            return InvalidUrl("The server does not speak HTTP as it should.")
        except zlib.error:
            return InvalidUrl("The page is packed in a way that cannot be unpacked.")

    async def _fetch_following_redirects(
        self, url: str, find_problem: Callable[[ParsedUrl], str] | None
    ) -> FetchedPage | InvalidUrl:
        target = parse_url(url)
        for _ in range(self.limits.max_redirects + 1):
            if isinstance(target, InvalidUrl):
                return target
            if find_problem is not None and (problem := find_problem(target)):
                return InvalidUrl(problem)
            response = await self._request_rate_limited(target)
            if not isinstance(response, ParsedUrl):
                return response
            target = response
        return InvalidUrl(f"It redirects more than {self.limits.max_redirects} times.")

    async def _request_rate_limited(self, target: ParsedUrl) -> FetchedPage | InvalidUrl | ParsedUrl:
        if self.rate_limiter is None:
            return await self._request(target)
        return await self.rate_limiter.run(f"{target.host}:{target.port}", partial(self._request, target))

    async def _request(self, target: ParsedUrl) -> FetchedPage | InvalidUrl | ParsedUrl:
        """Return the page, or the URL it redirects to."""
        address = httpcore.URL(scheme=target.scheme, host=target.host, port=target.port, target=target.path)
        waits = self.limits.connect_timeout_seconds
        timeout = {"connect": waits, "pool": waits, "read": self.limits.timeout_seconds, "write": waits}
        async with self._pool.stream(
            "GET", address, headers=_build_request_headers(target), extensions={"timeout": timeout}
        ) as answer:
            response_headers = _ResponseHeaders({name.lower(): value for name, value in answer.headers})
            if answer.status in (301, 302, 303, 307, 308):
                return resolve_redirect(target, response_headers.get_text(b"location"))
            if self.rate_limiter is not None and answer.status in (429, 503):
                self.rate_limiter.set_retry_after(
                    f"{target.host}:{target.port}", response_headers.get_text(b"retry-after")
                )
            if answer.status != HTTPStatus.OK:
                return InvalidUrl(f"The server answers with status {answer.status}.")
            return await self._read_response(target, response_headers, answer.aiter_stream())

    async def _read_response(
        self, target: ParsedUrl, headers: "_ResponseHeaders", chunks: AsyncIterator[bytes]
    ) -> FetchedPage | InvalidUrl:
        media, charset = headers.parse_content_type()
        if media not in READABLE_MEDIA_TYPES:
            return InvalidUrl(f"It is {media or 'of no named type'}, which cannot be read here.")
        packing = headers.get_text(b"content-encoding").lower()
        if packing not in ("", "identity", "gzip"):
            return InvalidUrl(f"It is packed as {packing[:40]}, which was not asked for.")
        body = await _read_body(chunks, self.limits, compressed=packing == "gzip")
        return body if isinstance(body, InvalidUrl) else FetchedPage(target.url, media, charset, body)


@dataclass(frozen=True, slots=True)
class _ResponseHeaders:
    """The headers of a response."""

    headers: dict[bytes, bytes]

    def get_text(self, name: bytes) -> str:
        return self.headers.get(name, b"").decode("latin-1").strip()

    def parse_content_type(self) -> tuple[str, str]:
        """Return media type and charset, each empty if it is not declared."""
        if b"content-type" not in self.headers:
            return "", ""
        message = Message()
        message["content-type"] = self.get_text(b"content-type")
        return message.get_content_type(), message.get_content_charset("")


def _build_request_headers(target: ParsedUrl) -> list[tuple[str, str]]:
    accepted = ", ".join(sorted(READABLE_MEDIA_TYPES - {"application/pdf"}))
    return [
        ("Host", target.authority),
        ("User-Agent", USER_AGENT),
        ("Accept", f"{accepted}, application/pdf;q=0.9"),
        ("Accept-Encoding", "gzip"),
    ]


async def _read_body(chunks: AsyncIterator[bytes], limits: FetchLimits, *, compressed: bool) -> bytes | InvalidUrl:
    """Return the unpacked body, and keep at most `limits.max_body_bytes` plus one chunk in memory."""
    body, size = bytearray(), 0
    unpack = zlib.decompressobj(wbits=31) if compressed else None
    async for part in chunks:
        size += len(part)
        available = min(limits.max_body_bytes, size * limits.max_compression_ratio) + 1 - len(body)
        body += part if unpack is None else unpack.decompress(part, max(available, 1))
        if len(body) > limits.max_body_bytes:
            return InvalidUrl(f"The page is larger than {limits.max_body_bytes:,} bytes.")
        if unpack is not None and len(body) > size * limits.max_compression_ratio:
            return InvalidUrl(f"The page unpacks to more than {limits.max_compression_ratio} times its size.")
    if unpack is not None and not unpack.eof:
        return InvalidUrl("The page ends before its end.")
    return bytes(body)
