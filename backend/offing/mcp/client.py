"""Asking a server: which tools it has, and what one of them answers.

The only home of the package `mcp`, which is loaded when a server is first asked. Each exchange stands alone: no session
outlives it, so nothing that a server remembers of one run reaches another. What a server says is data for its caller.
"""

import asyncio
import logging
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, TypeVar, cast

import httpcore
import orjson

from offing.core.blocks import plain
from offing.core.step import shortened
from offing.mcp.listed import Listed, digest
from offing.mcp.secrets import Secrets, secrets_of
from offing.mcp.servers import Server
from offing.telemetry.tracing import unrecorded
from offing.web.connecting import GuardedNetwork
from offing.web.guard import Guard, Resolve, resolve
from offing.web.url import PORTS, Refused

if TYPE_CHECKING:
    from mcp.client.session import ClientSession
    from mcp_types import CallToolResult

    from offing.mcp.transport import Wire

T = TypeVar("T")

MOST_PAGES = 20
MOST_TOOLS = 200
LONGEST_ERROR = 300
"""Code points of what a server says when it refuses."""
LIST_SECONDS = 30.0
AT_ONCE = 8
"""Exchanges with one server from one process."""

NEEDED = "MCP servers are asked by the extra `mcp`, which is not installed: pip install 'offing[mcp]'."


@dataclass(frozen=True, slots=True)
class Said:
    """What a tool answered."""

    text: str
    failed: bool
    """The tool itself says that it could not."""
    left_out: tuple[str, ...]
    """Kinds of content that were not taken, such as `image`."""


@dataclass(slots=True)
class Asking:
    """Asks servers. Use it as a context. Nothing is connected before it is needed."""

    env: Mapping[str, str] = field(repr=False)
    resolve: Resolve = resolve
    trusted: ssl.SSLContext | None = None
    """Certificates. None: the usual ones."""
    _pools: dict[str, httpcore.AsyncConnectionPool] = field(
        default_factory=dict[str, httpcore.AsyncConnectionPool], init=False, repr=False
    )

    async def __aenter__(self) -> "Asking":
        return self

    async def __aexit__(self, *_: object) -> None:
        for pool in self._pools.values():
            await pool.aclose()

    async def listed(self, server: Server) -> tuple[Listed, ...] | Refused:
        """All of its tools, as they are now."""
        try:
            async with asyncio.timeout(LIST_SECONDS):
                return await self._exchange(server, _listed)
        except TimeoutError:
            return Refused(f"It did not list its tools within {LIST_SECONDS:g} seconds.")

    async def called(self, server: Server, pin: str, tool: str, arguments: dict[str, Any]) -> Said | Refused:
        """One call, made only where the server's list of tools is the one that `pin` is the hash of."""

        async def work(session: "ClientSession", secrets: Secrets) -> Said | Refused:
            tools = await _listed(session, secrets)
            if isinstance(tools, Refused):
                return tools
            if digest(tools) != pin:
                return Refused("Its tools have changed since they were looked at; the operator must pin them again.")
            return await _called(session, secrets, tool, arguments)

        return await self._exchange(server, work)

    async def _exchange(
        self, server: Server, work: Callable[["ClientSession", Secrets], Awaitable[T | Refused]]
    ) -> T | Refused:
        secrets = secrets_of(server, self.env)
        if isinstance(secrets, Refused):
            return secrets
        if find_spec("mcp") is None:
            return Refused(NEEDED)
        await asyncio.to_thread(_load)
        from offing.mcp.transport import Wire

        wire = Wire(self._pool(server), server.target, secrets)
        try:
            async with _session(wire, server.url) as session:
                return await work(session, secrets)
        except Exception as error:  # whatever a server makes the protocol's library raise is an answer that is none
            return Refused(_problem(wire, error))

    def _pool(self, server: Server) -> httpcore.AsyncConnectionPool:
        """Of an address alone: connections are shared, what is sent over them is not."""
        target, key = server.target, f"{server.private}:{server.url}"
        if key not in self._pools:
            place = f"{target.host}:{target.port}"
            ports = frozenset((*PORTS.values(), target.port))
            guard = Guard(self.resolve, frozenset((place,)) if server.private else frozenset(), ports)
            self._pools[key] = httpcore.AsyncConnectionPool(
                ssl_context=self.trusted,
                max_connections=AT_ONCE,
                keepalive_expiry=5.0,
                network_backend=GuardedNetwork(guard),
            )
        return self._pools[key]


@asynccontextmanager
async def _session(wire: "Wire", url: str) -> AsyncGenerator["ClientSession"]:
    import httpx2
    from mcp.client.client import Client
    from mcp.client.streamable_http import streamable_http_client
    from mcp_types import Implementation

    who = Implementation(name="Offing", version="0.1")
    address = url.partition("#")[0]
    async with AsyncExitStack() as stack:
        stack.enter_context(unrecorded())
        http = await stack.enter_async_context(httpx2.AsyncClient(transport=wire, trust_env=False, timeout=None))
        streams = streamable_http_client(address, http_client=http)
        client = await stack.enter_async_context(Client(streams, client_info=who, cache=None))
        yield client.session


async def _listed(session: "ClientSession", secrets: Secrets) -> tuple[Listed, ...] | Refused:
    """Asked for without the library's own reading of schemas, which a server's patterns could make slow."""
    from mcp_types import ListToolsRequest, ListToolsResult, PaginatedRequestParams

    found: list[Listed] = []
    cursor: str | None = None
    for _ in range(MOST_PAGES):
        asked = ListToolsRequest(params=PaginatedRequestParams(cursor=cursor) if cursor else None)
        page = await session.send_request(asked, ListToolsResult)
        found += [
            Listed(secrets.without(t.name), secrets.without(t.description or ""), secrets.without(t.input_schema))
            for t in page.tools
        ]
        cursor = page.next_cursor
        if not cursor or len(found) > MOST_TOOLS:
            break
    if cursor or len(found) > MOST_TOOLS:
        return Refused(f"It lists more than {MOST_TOOLS} tools.")
    if len({tool.name for tool in found}) < len(found):
        return Refused("It lists two tools of one name.")
    return tuple(found)


async def _called(session: "ClientSession", secrets: Secrets, tool: str, arguments: dict[str, Any]) -> Said | Refused:
    from mcp.shared.exceptions import MCPError
    from mcp_types import CallToolRequest, CallToolRequestParams, CallToolResult

    asked = CallToolRequest(params=CallToolRequestParams(name=tool, arguments=arguments))
    try:
        result = await session.send_request(asked, CallToolResult)
    except MCPError as error:
        if error.code in _AMBIGUOUS:
            raise
        return Said(secrets.without(error.message), True, ())
    return _said(result, secrets)


_AMBIGUOUS = frozenset((-32000, -32001, -32600, -32601, -32603, -32700))
"""Codes that servers send, and that the library makes up where the wire failed: none of their words are taken."""


def _said(result: "CallToolResult", secrets: Secrets) -> Said:
    texts: list[str] = []
    left_out: list[str] = []
    for part in result.content:
        match part.type:
            case "text":
                texts.append(part.text)
            case "resource_link":
                texts.append(f"{part.name}: {part.uri}")
            case "resource" if (text := getattr(part.resource, "text", None)) is not None:
                texts.append(text)
            case kind:
                left_out.append(kind)
    if not texts and result.structured_content is not None:
        texts.append(orjson.dumps(result.structured_content, option=orjson.OPT_INDENT_2).decode())
    return Said(secrets.without("\n\n".join(texts)), result.is_error, tuple(left_out))


def _problem(wire: "Wire", error: Exception) -> str:
    """Nothing of what the server said, and nothing that it was sent."""
    return wire.problem or f"It does not answer as the protocol asks{_coded(error)}."


def _coded(error: Exception) -> str:
    code = getattr(_innermost(error), "code", None)
    return f" (error {code})" if isinstance(code, int) else ""


def _innermost(error: Exception) -> Exception:
    return _innermost(cast(ExceptionGroup[Exception], error).exceptions[0]) if _is_group(error) else error


def _is_group(error: Exception) -> bool:
    return isinstance(error, ExceptionGroup)


def _load() -> None:
    """Import what takes a second, off the event loop; and keep the library from logging what servers say."""
    for module in ("mcp.client.client", "mcp.client.streamable_http", "offing.mcp.transport"):
        import_module(module)
    for name in ("mcp", "client", "httpx2", "httpcore2"):
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)


def error_text(said: Said) -> str:
    """What a tool said when it could not, short enough for a message: other people's text."""
    return shortened(plain(said.text), LONGEST_ERROR)
