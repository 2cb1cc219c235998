"""The server itself: HTTP/1.1 on loopback, one reply per request, every request kept.

What it answers is a function of the request, so that a test scripts it as a list (`scripted`) or decides each time.
"""

import asyncio
import json
import os
import threading
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

from offing.models.accepted_servers import ACCEPTED_SERVERS_VARIABLE, accept_server
from tests.model_provider.replies import (
    Completion,
    Cut,
    Fault,
    Hangup,
    Malformed,
    Reply,
    Slow,
    Whole,
    completion_body,
    completion_events,
    error_body,
)


@dataclass(frozen=True, slots=True)
class Received:
    """A request as it arrived."""

    method: str
    path: str
    headers: Mapping[str, str]
    """Names in lower case."""
    body: dict[str, Any]
    """Empty where it is no JSON."""
    at: float
    """Seconds on the loop's clock."""
    raw: bytes = b""
    """The body as it arrived."""


Responder = Callable[[Received], Reply]


def scripted(*replies: Reply) -> Responder:
    """The replies in order; a request past the last one gets a 500 that says so."""
    rest = iter(replies)
    return lambda _request: next(rest, Fault(500, "the script has no further reply"))


def able(request: Received) -> Reply:
    """What a provider that can everything answers to the probes of `offing provider test`."""
    if "tools" in request.body:
        return Completion(tool="report_number", arguments='{"number": 7}')
    if "response_format" in request.body:
        return Completion('{"number": 7}')
    return Completion("1 2 3 4 5 6 7 8 9 10 11 12" if request.body.get("stream") else "ready")


@dataclass(slots=True)
class WireServer:
    """`async with WireServer(scripted(…)) as server:`; `server.url` is the API base, `server.requests` what came."""

    respond: Responder
    socket: str = ""
    """A unix socket to listen on instead of loopback."""
    accepted: bool = True
    """Whether runs may name it, as after `offing engine accept`."""
    requests: list[Received] = field(default_factory=list[Received])
    hangups: list[float] = field(default_factory=list[float])
    """Seconds on the loop's clock at which a client closed its connection before it had the whole reply."""
    most_at_once: int = 0
    """The largest number of requests that were unanswered at the same time."""
    _unanswered: int = 0
    _server: asyncio.Server | None = None
    _open: set[asyncio.Task[None]] = field(default_factory=set[asyncio.Task[None]])

    @property
    def url(self) -> str:
        assert self._server is not None, "enter the server first"
        if self.socket:
            return f"unix://{self.socket}"
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/v1"

    @property
    def bodies(self) -> list[dict[str, Any]]:
        return [request.body for request in self.requests]

    @property
    def gaps(self) -> list[float]:
        """Seconds between consecutive requests."""
        return [b.at - a.at for a, b in zip(self.requests, self.requests[1:], strict=False)]

    async def __aenter__(self) -> Self:
        if self.socket:
            self._server = await asyncio.start_unix_server(self._accept, self.socket)
        else:
            self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
            if self.accepted and ACCEPTED_SERVERS_VARIABLE in os.environ:
                accept_server(os.environ, self.url)
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None):
        assert self._server is not None
        self._server.close()
        for task in self._open:
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)
        await self._server.wait_closed()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._converse(reader, writer))
        self._open.add(task)
        task.add_done_callback(self._open.discard)

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection until either side closes it."""
        try:
            while (request := await _read(reader)) is not None:
                self.requests.append(request)
                watching = asyncio.create_task(self._note_hangup(reader))
                self._unanswered += 1
                self.most_at_once = max(self.most_at_once, self._unanswered)
                try:
                    if not await _send(writer, self.respond(request), request.body):
                        return
                finally:
                    self._unanswered -= 1
                    watching.cancel()
        except (ConnectionError, asyncio.IncompleteReadError):
            return
        finally:
            writer.close()

    async def _note_hangup(self, reader: asyncio.StreamReader) -> None:
        while not (reader.at_eof() or reader.exception()):  # noqa: ASYNC110  a reader has no event for this
            await asyncio.sleep(0.01)
        self.hangups.append(asyncio.get_running_loop().time())


async def _read(reader: asyncio.StreamReader) -> Received | None:
    head = await reader.readuntil(b"\r\n\r\n") if not reader.at_eof() else b""
    if not head:
        return None
    first, *lines = head.decode("latin-1").strip().split("\r\n")
    method, path, _ = first.split(" ", 2)
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    raw = await reader.readexactly(int(headers.get("content-length", "0")))
    return Received(method, path, headers, _parsed(raw), asyncio.get_running_loop().time(), raw)


def _parsed(raw: bytes) -> dict[str, Any]:
    try:
        return json.loads(raw) if raw else {}
    except ValueError:
        return {}


async def _send(writer: asyncio.StreamWriter, reply: Reply, body: Mapping[str, Any]) -> bool:
    """Write one reply. False: the connection is to be closed."""
    match reply:
        case Hangup():
            return False
        case Fault():
            writer.write(_head(reply.status, len(error_body(reply)), reply.headers) + error_body(reply))
        case Malformed():
            writer.write(_head(200, len(reply.body), {}) + reply.body)
        case Whole():
            _write_whole(writer, reply)
        case Slow():
            if not reply.between:
                await asyncio.sleep(reply.seconds)
            if isinstance(reply.reply, Whole):
                return await _send(writer, reply.reply, body)
            return await _complete(writer, reply.reply, body, pause=reply.seconds if reply.between else 0.0)
        case Cut():
            return await _complete(writer, reply.reply, body, fraction=reply.fraction)
        case Completion():
            return await _complete(writer, reply, body)
    await writer.drain()
    return True


def _write_whole(writer: asyncio.StreamWriter, reply: Whole) -> None:
    whole = json.dumps(reply.body).encode()
    writer.write(_head(200, len(whole), {}) + whole)


async def _complete(
    writer: asyncio.StreamWriter,
    reply: Completion,
    body: Mapping[str, Any],
    *,
    fraction: float = 1.0,
    pause: float = 0.0,
) -> bool:
    model = str(body.get("model", ""))
    if not body.get("stream"):
        whole = completion_body(reply, model)
        writer.write(_head(200, len(whole), {}) + whole[: int(len(whole) * fraction)])
    else:
        options: dict[str, Any] = body.get("stream_options") or {}
        usage = bool(options.get("include_usage"))
        await _stream(writer, list(completion_events(reply, model, usage=usage)), fraction, pause)
    await writer.drain()
    return fraction == 1.0


async def _stream(writer: asyncio.StreamWriter, events: list[bytes], fraction: float, pause: float) -> None:
    writer.write(
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n",
    )
    for event in events[: int(len(events) * fraction)]:
        await asyncio.sleep(pause)
        writer.write(f"{len(event):x}\r\n".encode() + event + b"\r\n")
        await writer.drain()
    if fraction == 1.0:
        writer.write(b"0\r\n\r\n")


def _head(status: int, length: int, headers: Mapping[str, str]) -> bytes:
    lines = [f"HTTP/1.1 {status} {_word(status)}", "content-type: application/json", f"content-length: {length}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode()


def _word(status: int) -> str:
    return "OK" if status < 400 else "Error"


@contextmanager
def serve_on_thread(respond: Responder, *, accepted: bool = True) -> Generator[WireServer]:
    """A server on a thread and a loop of its own, for commands that a test waits for."""
    server, loop = WireServer(respond, accepted=accepted), asyncio.new_event_loop()
    loop.run_until_complete(server.__aenter__())
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        asyncio.run_coroutine_threadsafe(server.__aexit__(None, None, None), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
