"""Send the HTTP requests of one exchange, within limits and only to the address that the operator named.

The secrets of a server are added to requests here and nowhere else. This module is imported when a server
is called, because `httpx2` comes with the extra.
"""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, cast

import httpcore
import httpx2
import orjson

from offing.mcp.secrets import ServerSecrets
from offing.web.fetch import USER_AGENT
from offing.web.guarded_network import AddressBlockedError
from offing.web.url import ParsedUrl

MAX_EXCHANGE_BYTES = 4_000_000
"""Maximum bytes that a server may send in one exchange."""
MAX_EVENT_LINES = 4_000
"""Maximum number of event lines in one exchange. Each message costs time, even a small one."""
CONNECT_TIMEOUT_SECONDS = 5.0
READ_TIMEOUT_SECONDS = 600.0
"""Maximum seconds without a byte. The timeout of a tool is shorter."""
CLOSE_TIMEOUT_SECONDS = 2.0
"""Maximum seconds for telling a server that an exchange is over."""

_FORWARDED_REQUEST_HEADERS = frozenset((b"accept", b"content-type", b"last-event-id"))
_FORWARDED_RESPONSE_HEADERS = frozenset((b"content-type", b"mcp-session-id", b"mcp-protocol-version"))

_STATUS_PROBLEMS = {
    401: "It does not accept the credentials.",
    403: "It does not allow this.",
    429: "It asks to wait; its limit is reached.",
}


class TransportRefusedError(httpx2.TransportError):
    """Stops an exchange. The reason is in `BoundedTransport.problem`."""


@dataclass(slots=True)
class BoundedTransport(httpx2.AsyncBaseTransport):
    """The transport of one exchange."""

    pool: httpcore.AsyncConnectionPool
    target: ParsedUrl
    secrets: ServerSecrets
    problem: str = ""
    """The first failure, in a sentence that contains nothing the server sent."""
    received_bytes: int = 0
    event_lines: int = 0

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if (request.url.raw_scheme, request.url.raw_host, request.url.raw_path) != self._address():
            raise self.reject("It names another address than the one that the operator allows.")
        if request.method == "GET" and "last-event-id" not in request.headers:
            return httpx2.Response(405, request=request)  # the server's unsolicited messages are not read
        if request.method == "DELETE":
            return await self._close_exchange(request)
        return await self._send(request)

    async def _close_exchange(self, request: httpx2.Request) -> httpx2.Response:
        """End an exchange without waiting long for the response."""
        try:
            async with asyncio.timeout(CLOSE_TIMEOUT_SECONDS):
                answer = await self._send(request)
                await answer.aread()
        except (TimeoutError, httpx2.TransportError):
            pass
        return httpx2.Response(204, request=request)

    async def _send(self, request: httpx2.Request) -> httpx2.Response:
        body = await request.aread()
        try:
            answer = await self.pool.handle_async_request(self._build_request(request, body))
        except AddressBlockedError as blocked:
            raise self.reject(blocked.invalid_url.problem) from None
        except (httpcore.TimeoutException, httpcore.NetworkError):
            raise self.reject("It cannot be reached.") from None
        except (httpcore.ProtocolError, httpcore.UnsupportedProtocol):
            raise self.reject("It does not speak HTTP as it should.") from None
        if problem := _find_unreadable(answer):
            await answer.aclose()
            raise self.reject(problem)
        if problem := _status_problem(answer.status):
            self.problem = self.problem or problem
        headers = [(name, value) for name, value in answer.headers if name.lower() in _FORWARDED_RESPONSE_HEADERS]
        events = any(b"event-stream" in value.lower() for name, value in headers if name.lower() == b"content-type")
        stream = _CountedStream(self, answer, events)
        response = httpx2.Response(answer.status, headers=headers, stream=stream, request=request)
        if answer.status == HTTPStatus.OK and not events:
            await self._check_response(body, response)
        return response

    async def _check_response(self, request_body: bytes, answer: httpx2.Response) -> None:
        """Check that a response has the request's id and either a result or an error.

        Without them the library would wait forever. Raises TransportRefusedError.
        """
        request_id = orjson.loads(request_body).get("id") if request_body else None
        try:
            message = orjson.loads(await answer.aread())
        except orjson.JSONDecodeError:
            message = None
        finally:
            await answer.aclose()
        if request_id is None:
            return
        fields = cast(dict[str, Any], message) if isinstance(message, dict) else {}
        if fields.get("id") != request_id or ("result" in fields) == ("error" in fields):
            raise self.reject("It does not answer as the protocol asks.")

    def _build_request(self, request: httpx2.Request, body: bytes) -> httpcore.Request:
        query = self.secrets.render_query("?" in self.target.path)
        address = httpcore.URL(
            scheme=self.target.scheme,
            host=self.target.host,
            port=self.target.port,
            target=self.target.path + query,
        )
        forwarded = [
            (n, v)
            for n, v in request.headers.raw
            if n.lower() in _FORWARDED_REQUEST_HEADERS or n.lower().startswith(b"mcp-")
        ]
        ours = [
            (b"Host", self.target.authority.encode()),
            (b"User-Agent", USER_AGENT.encode()),
            (b"Accept-Encoding", b"identity"),
            (b"Content-Length", str(len(body)).encode()),
        ]
        waits = {
            "connect": CONNECT_TIMEOUT_SECONDS,
            "pool": READ_TIMEOUT_SECONDS,
            "read": READ_TIMEOUT_SECONDS,
            "write": READ_TIMEOUT_SECONDS,
        }
        headers = [*ours, *forwarded, *self.secrets.headers]
        return httpcore.Request(request.method, address, headers=headers, content=body, extensions={"timeout": waits})

    def _address(self) -> tuple[bytes, bytes, bytes]:
        return self.target.scheme.encode(), self.target.host.encode(), self.target.path.encode()

    def reject(self, problem: str) -> TransportRefusedError:
        """Return an error to raise. The first problem is recorded."""
        self.problem = self.problem or problem
        return TransportRefusedError(problem)

    def count_received(self, chunk: bytes, *, events: bool) -> None:
        """Count received bytes and lines. Raises TransportRefusedError if a server sends too much."""
        self.received_bytes += len(chunk)
        self.event_lines += chunk.count(b"\n") + chunk.count(b"\r") if events else 0
        if self.event_lines > MAX_EVENT_LINES:
            raise self.reject("It sends too many messages.")
        if self.received_bytes > MAX_EXCHANGE_BYTES:
            raise self.reject(f"It sends more than {MAX_EXCHANGE_BYTES:,} bytes.")


class _CountedStream(httpx2.AsyncByteStream):
    """The body of a response, counted as it arrives."""

    def __init__(self, transport: BoundedTransport, answer: httpcore.Response, events: bool) -> None:
        self._transport, self._answer, self._events = transport, answer, events

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for part in self._answer.aiter_stream():
                self._transport.count_received(part, events=self._events)
                yield part
        except (httpcore.TimeoutException, httpcore.NetworkError, httpcore.ProtocolError):
            raise self._transport.reject("It breaks off in the middle of an answer.") from None

    async def aclose(self) -> None:
        await self._answer.aclose()


def _find_unreadable(answer: httpcore.Response) -> str:
    """Return why a response is not read at all. Empty if it is."""
    if 300 <= answer.status < 400:
        return "It redirects, and a server's address is the one that the operator named."
    headers = {name.lower(): value for name, value in answer.headers}
    if headers.get(b"content-encoding", b"identity").strip().lower() not in (b"", b"identity"):
        return "It packs its answer, which was not asked for."
    return ""


def _status_problem(status: int) -> str:
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return f"It answers with status {status}."
    return _STATUS_PROBLEMS.get(status, "")
