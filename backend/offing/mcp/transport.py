"""How a server's HTTP goes over the wire: to the one address that the operator named, within bounds, and nowhere else.

The only home of where a server's secret is added to a request, and so of where it can go. Imported where a server is
asked, and not before: `httpx2` comes with the extra.
"""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from http import HTTPStatus

import httpcore
import httpx2
import orjson

from offing.mcp.secrets import Secrets
from offing.web.connecting import Barred
from offing.web.fetch import AGENT
from offing.web.url import Target

LARGEST = 4_000_000
"""Bytes that a server may send in one exchange."""
MOST_LINES = 4_000
"""Of events in one exchange: each message costs time, however small it is."""
CONNECT_SECONDS = 5.0
SILENT_SECONDS = 600.0
"""Without a byte; a tool's own limit is narrower."""
PARTING_SECONDS = 2.0
"""For telling a server that an exchange is over."""

_SENT = frozenset((b"accept", b"content-type", b"last-event-id"))
_TAKEN = frozenset((b"content-type", b"mcp-session-id", b"mcp-protocol-version"))

_STATUS = {
    401: "It does not accept the credentials.",
    403: "It does not allow this.",
    429: "It asks to wait; its limit is reached.",
}


class Refusal(httpx2.TransportError):
    """What stops an exchange; the sentence is in `Wire.problem`."""


@dataclass(slots=True)
class Wire(httpx2.AsyncBaseTransport):
    """The transport of one exchange."""

    pool: httpcore.AsyncConnectionPool
    target: Target
    secrets: Secrets
    problem: str = ""
    """The first thing that went wrong, in a sentence that holds nothing of what the server said."""
    received: int = 0
    lines: int = 0

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if (request.url.raw_scheme, request.url.raw_host, request.url.raw_path) != self._place():
            raise self.refused("It names another address than the one that the operator allows.")
        if request.method == "GET" and "last-event-id" not in request.headers:
            return httpx2.Response(405, request=request)  # nobody listens for what a server says of its own accord
        if request.method == "DELETE":
            return await self._parted(request)
        return await self._answered(request)

    async def _parted(self, request: httpx2.Request) -> httpx2.Response:
        """The end of an exchange, which nobody waits for long."""
        try:
            async with asyncio.timeout(PARTING_SECONDS):
                answer = await self._answered(request)
                await answer.aread()
        except (TimeoutError, httpx2.TransportError):
            pass
        return httpx2.Response(204, request=request)

    async def _answered(self, request: httpx2.Request) -> httpx2.Response:
        body = await request.aread()
        try:
            answer = await self.pool.handle_async_request(self._outgoing(request, body))
        except Barred as barred:
            raise self.refused(barred.refused.problem) from None
        except (httpcore.TimeoutException, httpcore.NetworkError):
            raise self.refused("It cannot be reached.") from None
        except (httpcore.ProtocolError, httpcore.UnsupportedProtocol):
            raise self.refused("It does not speak HTTP as it should.") from None
        if problem := _untaken(answer):
            await answer.aclose()
            raise self.refused(problem)
        if problem := _told(answer.status):
            self.problem = self.problem or problem
        headers = [(name, value) for name, value in answer.headers if name.lower() in _TAKEN]
        events = any(b"event-stream" in value.lower() for name, value in headers if name.lower() == b"content-type")
        stream = _Counted(self, answer, events)
        taken = httpx2.Response(answer.status, headers=headers, stream=stream, request=request)
        if answer.status == HTTPStatus.OK and not events:
            await self._check(body, taken)
        return taken

    async def _check(self, asked: bytes, answer: httpx2.Response) -> None:
        """An answer to a request has its id, and a result or an error: the library waits for ever for one that has not.

        Raises Refusal.
        """
        wanted = orjson.loads(asked).get("id") if asked else None
        try:
            found = orjson.loads(await answer.aread())
        except orjson.JSONDecodeError:
            found = None
        finally:
            await answer.aclose()
        if wanted is None:
            return
        if not isinstance(found, dict) or found.get("id") != wanted or ("result" in found) == ("error" in found):  # pyright: ignore[reportUnknownMemberType]
            raise self.refused("It does not answer as the protocol asks.")

    def _outgoing(self, request: httpx2.Request, body: bytes) -> httpcore.Request:
        query = self.secrets.query_after("?" in self.target.path)
        address = httpcore.URL(
            scheme=self.target.scheme,
            host=self.target.host,
            port=self.target.port,
            target=self.target.path + query,
        )
        kept = [(n, v) for n, v in request.headers.raw if n.lower() in _SENT or n.lower().startswith(b"mcp-")]
        ours = [
            (b"Host", self.target.authority.encode()),
            (b"User-Agent", AGENT.encode()),
            (b"Accept-Encoding", b"identity"),
            (b"Content-Length", str(len(body)).encode()),
        ]
        waits = {"connect": CONNECT_SECONDS, "pool": SILENT_SECONDS, "read": SILENT_SECONDS, "write": SILENT_SECONDS}
        headers = [*ours, *kept, *self.secrets.headers]
        return httpcore.Request(request.method, address, headers=headers, content=body, extensions={"timeout": waits})

    def _place(self) -> tuple[bytes, bytes, bytes]:
        return self.target.scheme.encode(), self.target.host.encode(), self.target.path.encode()

    def refused(self, problem: str) -> Refusal:
        """To be raised; the first one is kept."""
        self.problem = self.problem or problem
        return Refusal(problem)

    def count(self, part: bytes, *, events: bool) -> None:
        """Raises Refusal where a server sends too much."""
        self.received += len(part)
        self.lines += part.count(b"\n") + part.count(b"\r") if events else 0
        if self.lines > MOST_LINES:
            raise self.refused("It sends too many messages.")
        if self.received > LARGEST:
            raise self.refused(f"It sends more than {LARGEST:,} bytes.")


class _Counted(httpx2.AsyncByteStream):
    """An answer's body, counted as it comes."""

    def __init__(self, wire: Wire, answer: httpcore.Response, events: bool) -> None:
        self._wire, self._answer, self._events = wire, answer, events

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for part in self._answer.aiter_stream():
                self._wire.count(part, events=self._events)
                yield part
        except (httpcore.TimeoutException, httpcore.NetworkError, httpcore.ProtocolError):
            raise self._wire.refused("It breaks off in the middle of an answer.") from None

    async def aclose(self) -> None:
        await self._answer.aclose()


def _untaken(answer: httpcore.Response) -> str:
    """Why an answer is not read at all. Empty: it is."""
    if 300 <= answer.status < 400:
        return "It redirects, and a server's address is the one that the operator named."
    headers = {name.lower(): value for name, value in answer.headers}
    if headers.get(b"content-encoding", b"identity").strip().lower() not in (b"", b"identity"):
        return "It packs its answer, which was not asked for."
    return ""


def _told(status: int) -> str:
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return f"It answers with status {status}."
    return _STATUS.get(status, "")
