"""A small web server on loopback under a invented public name, and a listener beside it that nobody may reach."""

import asyncio
import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from offing.web.fetch import Fetcher, FetchLimits
from offing.web.guard import AddressGuard

NAME = "public.example"


@dataclass(frozen=True, slots=True)
class Reply:
    body: bytes = b""
    status: str = "200 OK"
    headers: Mapping[str, str] = field(default_factory=lambda: {"Content-Type": "text/html; charset=utf-8"})
    wait: float = 0.0
    """Seconds before it is sent."""


def redirect(to: str, status: str = "302 Found") -> Reply:
    return Reply(status=status, headers={"Location": to})


@dataclass(slots=True)
class Site:
    """`pages` by path. `asked` holds the requests in order."""

    pages: dict[str, Reply] = field(default_factory=dict[str, Reply])
    requests: list[str] = field(default_factory=list[str])
    port: int = 0
    canary: int = 0
    touched: list[str] = field(default_factory=list[str])
    """Connections that the canary saw."""
    answers: list[Sequence[str]] = field(default_factory=list[Sequence[str]])
    """What the site's name resolves to, look-up by look-up; then loopback."""

    @property
    def url(self) -> str:
        return f"http://{NAME}:{self.port}"

    async def resolve(self, host: str, port: int) -> Sequence[str]:
        if host != NAME:
            return ("127.0.0.1",)
        return self.answers.pop(0) if self.answers else ("127.0.0.1",)

    def fetcher(self, limits: FetchLimits | None = None) -> Fetcher:
        """The site's own place is allowed by name; the canary's is not."""
        guard = AddressGuard(self.resolve, allowed_hosts=frozenset({f"{NAME}:{self.port}"}))
        return Fetcher(guard, limits or FetchLimits())


@asynccontextmanager
async def running() -> AsyncGenerator[Site]:
    site = Site()

    at_work: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        at_work.add(task)
        try:
            await answer(reader, writer)
        finally:
            at_work.discard(task)
            writer.close()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        length = re.search(r"content-length: (\d+)", head, re.IGNORECASE)
        site.requests.append(head + (await reader.readexactly(int(length[1])) if length else b"").decode())
        reply = site.pages.get(head.split(" ")[1].partition("?")[0], Reply(status="404 Not Found"))
        await asyncio.sleep(reply.wait)
        lines = [f"HTTP/1.1 {reply.status}", f"Content-Length: {len(reply.body)}", "Connection: close"]
        lines += [f"{name}: {value}" for name, value in reply.headers.items()]
        writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + reply.body)
        await _closed(writer)

    async def touched(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        site.touched.append(str(writer.get_extra_info("peername")))
        await _closed(writer)

    server, canary = (
        await asyncio.start_server(serve, "127.0.0.1", 0),
        await asyncio.start_server(touched, "127.0.0.1", 0),
    )
    site.port, site.canary = (one.sockets[0].getsockname()[1] for one in (server, canary))
    async with server, canary:
        yield site
        for task in at_work:
            task.cancel()
        await asyncio.gather(*at_work, return_exceptions=True)


async def _closed(writer: asyncio.StreamWriter) -> None:
    """Says its end; a client that went away before is no fault of the server's."""
    try:
        await writer.drain()
        writer.close()
        await writer.wait_closed()
    except (ConnectionError, BrokenPipeError):
        pass
