"""MCP servers on loopback: one by the official package, and a small one of ours that misbehaves on request."""

import asyncio
import re
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import orjson

Message = dict[str, Any]

TEXT: Message = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}


def tool(name: str = "echo", description: str = "Says it again.", schema: Message = TEXT) -> Message:
    return {"name": name, "description": description, "inputSchema": schema}


def text_message(text: str, **more: Any) -> Message:
    """A tool's answer."""
    return {"content": [{"type": "text", "text": text}], **more}


def content(*parts: Message, **more: Any) -> Message:
    return {"content": list(parts), **more}


@dataclass(frozen=True, slots=True)
class Raw:
    """An answer as it goes over the wire, in place of a result."""

    body: bytes = b""
    status: str = "200 OK"
    headers: Mapping[str, str] = field(default_factory=lambda: {"Content-Type": "application/json"})
    parts: int = 1
    """How often the body is sent, one after another."""


@dataclass(frozen=True, slots=True)
class Wrong:
    """An error of the protocol."""

    message: str
    code: int = -32602


Answer = Message | Raw | Wrong


@dataclass(slots=True)
class MisbehavingServer:
    """`asked` holds each request's head and message. `answer` is what a call of a tool gives."""

    tools: list[Message] = field(default_factory=lambda: [tool()])
    answer: Callable[[Message], Awaitable[Answer]] = field(default=lambda message: _echoed(message))
    on: dict[str, Answer] = field(default_factory=dict[str, Answer])
    """Answers by method that go before the usual ones."""
    pages: list[list[Message]] = field(default_factory=list[list[Message]])
    """The list of tools in parts. Empty: it comes whole."""
    streams: bool = False
    """Whether results come as events."""
    requests: list[tuple[str, Message]] = field(default_factory=list[tuple[str, Message]])
    closed_count: int = 0
    """Connections that a client closed while a call was on."""
    port: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"

    def calls(self) -> list[Message]:
        return [message for _, message in self.requests if message.get("method") == "tools/call"]

    async def _reply(self, message: Message) -> Answer:
        method = str(message.get("method"))
        if method in self.on:
            return self.on[method]
        match method:
            case "initialize":
                version = message["params"]["protocolVersion"]
                about = {"name": "own", "version": "1"}
                return {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": about}
            case "tools/list":
                return self._listed(message)
            case "tools/call":
                return await self.answer(message)
            case _:
                return Wrong("no such method", -32601)

    def _listed(self, message: Message) -> Message:
        if not self.pages:
            return {"tools": self.tools}
        at = int(message.get("params", {}).get("cursor", "0"))
        return {"tools": self.pages[at]} | ({"nextCursor": str(at + 1)} if at + 1 < len(self.pages) else {})

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while head := await _head(reader):
            length = re.search(r"content-length: (\d+)", head, re.IGNORECASE)
            body = await reader.readexactly(int(length[1])) if length else b""
            message: Message = orjson.loads(body) if body else {}
            self.requests.append((head, message))
            if "id" not in message:
                status = "202 Accepted" if message else "405 Method Not Allowed"
                await _send(writer, Raw(status=status))
                continue
            task = asyncio.create_task(self._reply(message))
            closed = asyncio.create_task(reader.read(1))
            await asyncio.wait({task, closed}, return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                self.closed_count += 1
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
                return
            closed.cancel()
            await asyncio.gather(closed, return_exceptions=True)
            await _send(writer, self._wired(message, task.result()))

    def _wired(self, message: Message, answer: Answer) -> Raw:
        match answer:
            case Raw():
                return answer
            case Wrong():
                body = {"error": {"code": answer.code, "message": answer.message}}
            case _:
                body = {"result": answer}
        whole = orjson.dumps({"jsonrpc": "2.0", "id": message["id"], **body})
        session = {"Mcp-Session-Id": "s1"} if message.get("method") == "initialize" else {}
        if self.streams:
            event = b"event: message\ndata: " + whole + b"\n\n"
            return Raw(event, headers={"Content-Type": "text/event-stream", **session})
        return Raw(whole, headers={"Content-Type": "application/json", **session})


@asynccontextmanager
async def misbehaving_server() -> AsyncGenerator[MisbehavingServer]:
    served = MisbehavingServer()
    at_work: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        at_work.add(task)
        try:
            await served.serve(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # the client went away, or the test is over
        finally:
            at_work.discard(task)
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    served.port = server.sockets[0].getsockname()[1]
    async with server:
        yield served
        for task in at_work:
            task.cancel()
        await asyncio.gather(*at_work, return_exceptions=True)


@asynccontextmanager
async def official() -> AsyncGenerator[str]:
    """The address of a server made with the official package."""
    import uvicorn
    from mcp.server.mcpserver import MCPServer

    server = MCPServer("official")

    @server.tool(description="Adds two numbers.")
    def add(a: int, b: int) -> str:  # pyright: ignore[reportUnusedFunction]
        return f"{a} and {b} make {a + b}."

    @server.tool(description="Tells what is known of a place.")
    def about(position: str, long: bool = False) -> str:  # pyright: ignore[reportUnusedFunction]
        return f"{position} lies by the sea. " * (400 if long else 1)

    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        app = server.streamable_http_app()
        running = uvicorn.Server(uvicorn.Config(app, log_level="critical", ws="none"))
        task = asyncio.create_task(running.serve([listener]))
        while not running.started:  # noqa: ASYNC110  # it has no event for it
            await asyncio.sleep(0.01)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
        running.should_exit = True
        await task


async def _echoed(message: Message) -> Answer:
    return text_message(str(message["params"]["arguments"].get("text", "")))


async def _head(reader: asyncio.StreamReader) -> str:
    try:
        return (await reader.readuntil(b"\r\n\r\n")).decode()
    except asyncio.IncompleteReadError:
        return ""


async def _send(writer: asyncio.StreamWriter, raw: Raw) -> None:
    lines = [f"HTTP/1.1 {raw.status}", f"Content-Length: {len(raw.body) * raw.parts}"]
    lines += [f"{name}: {value}" for name, value in raw.headers.items()]
    writer.write("\r\n".join(lines).encode() + b"\r\n\r\n")
    for _ in range(raw.parts):
        writer.write(raw.body)
        await writer.drain()
