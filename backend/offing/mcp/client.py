"""Call MCP servers: list their tools and call one of them.

Only this module uses the package `mcp`, which is loaded at the first call. Each exchange has its own
session, so nothing that a server stores about one run reaches another. What a server sends is data for the
caller.
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

from offing.core.step import shorten_line
from offing.core.untrusted_block import sanitize_text
from offing.mcp.secrets import ServerSecrets, load_secrets
from offing.mcp.servers import McpServerConfig
from offing.mcp.tool_listing import McpToolListing, hash_tools
from offing.telemetry.tracing import suppress_tracing
from offing.web.guard import AddressGuard, Resolver, resolve_host
from offing.web.guarded_network import GuardedNetwork
from offing.web.url import DEFAULT_PORTS, InvalidUrl

if TYPE_CHECKING:
    from mcp.client.session import ClientSession
    from mcp_types import CallToolResult

    from offing.mcp.transport import BoundedTransport

T = TypeVar("T")

MAX_LIST_PAGES = 20
MAX_TOOLS = 200
MAX_ERROR_CHARS = 300
"""Maximum code points of a server's error message."""
LIST_TIMEOUT_SECONDS = 30.0
MAX_CONNECTIONS_PER_SERVER = 8
"""Maximum number of connections from this process to one server."""

MISSING_EXTRA_MESSAGE = "MCP servers need the extra `mcp`, which is not installed. Run: pip install 'offing[mcp]'."


@dataclass(frozen=True, slots=True)
class McpToolResult:
    """The result of a tool call."""

    text: str
    is_error: bool
    """Whether the tool itself reports an error."""
    skipped_kinds: tuple[str, ...]
    """Kinds of content that were skipped, such as `image`."""


@dataclass(slots=True)
class McpClient:
    """A client for MCP servers, used as a context manager. It connects when it is first needed."""

    env: Mapping[str, str] = field(repr=False)
    resolve: Resolver = resolve_host
    ssl_context: ssl.SSLContext | None = None
    """Certificates. `None` means those of the system."""
    _pools: dict[str, httpcore.AsyncConnectionPool] = field(
        default_factory=dict[str, httpcore.AsyncConnectionPool], init=False, repr=False
    )

    async def __aenter__(self) -> "McpClient":
        return self

    async def __aexit__(self, *_: object) -> None:
        for pool in self._pools.values():
            await pool.aclose()

    async def list_tools(self, server: McpServerConfig) -> tuple[McpToolListing, ...] | InvalidUrl:
        """List all current tools of a server."""
        try:
            async with asyncio.timeout(LIST_TIMEOUT_SECONDS):
                return await self._exchange(server, _list_tools)
        except TimeoutError:
            return InvalidUrl(f"It did not list its tools within {LIST_TIMEOUT_SECONDS:g} seconds.")

    async def call_tool(
        self, server: McpServerConfig, pinned_sha256: str, tool: str, arguments: dict[str, Any]
    ) -> McpToolResult | InvalidUrl:
        """Call a tool, but only if the server's tool list has the hash `pinned_sha256`."""

        async def work(session: "ClientSession", secrets: ServerSecrets) -> McpToolResult | InvalidUrl:
            tools = await _list_tools(session, secrets)
            if isinstance(tools, InvalidUrl):
                return tools
            if hash_tools(tools) != pinned_sha256:
                return InvalidUrl("Its tools have changed since they were looked at; the operator must pin them again.")
            return await _call_tool(session, secrets, tool, arguments)

        return await self._exchange(server, work)

    async def _exchange(
        self, server: McpServerConfig, work: Callable[["ClientSession", ServerSecrets], Awaitable[T | InvalidUrl]]
    ) -> T | InvalidUrl:
        secrets = load_secrets(server, self.env)
        if isinstance(secrets, InvalidUrl):
            return secrets
        if find_spec("mcp") is None:
            return InvalidUrl(MISSING_EXTRA_MESSAGE)
        await asyncio.to_thread(_import_client)
        from offing.mcp.transport import BoundedTransport

        wire = BoundedTransport(self._get_pool(server), server.parsed_url, secrets)
        try:
            async with _open_session(wire, server.url) as session:
                return await work(session, secrets)
        # any exception that a server provokes in the protocol library counts as an invalid answer
        except Exception as error:
            return InvalidUrl(_describe_failure(wire, error))

    def _get_pool(self, server: McpServerConfig) -> httpcore.AsyncConnectionPool:
        """Return the connection pool of an address. Connections are shared; what is sent over them is not."""
        target, key = server.parsed_url, f"{server.private}:{server.url}"
        if key not in self._pools:
            address = f"{target.host}:{target.port}"
            ports = frozenset((*DEFAULT_PORTS.values(), target.port))
            guard = AddressGuard(self.resolve, frozenset((address,)) if server.private else frozenset(), ports)
            self._pools[key] = httpcore.AsyncConnectionPool(
                ssl_context=self.ssl_context,
                max_connections=MAX_CONNECTIONS_PER_SERVER,
                keepalive_expiry=5.0,
                network_backend=GuardedNetwork(guard),
            )
        return self._pools[key]


@asynccontextmanager
async def _open_session(transport: "BoundedTransport", url: str) -> AsyncGenerator["ClientSession"]:
    import httpx2
    from mcp.client.client import Client
    from mcp.client.streamable_http import streamable_http_client
    from mcp_types import Implementation

    who = Implementation(name="Offing", version="0.1")
    address = url.partition("#")[0]
    async with AsyncExitStack() as stack:
        stack.enter_context(suppress_tracing())
        http = await stack.enter_async_context(httpx2.AsyncClient(transport=transport, trust_env=False, timeout=None))
        streams = streamable_http_client(address, http_client=http)
        client = await stack.enter_async_context(Client(streams, client_info=who, cache=None))
        yield client.session


async def _list_tools(session: "ClientSession", secrets: ServerSecrets) -> tuple[McpToolListing, ...] | InvalidUrl:
    """List the tools without the library's own parsing of schemas, which patterns of a server could make slow."""
    from mcp_types import ListToolsRequest, ListToolsResult, PaginatedRequestParams

    listings: list[McpToolListing] = []
    cursor: str | None = None
    for _ in range(MAX_LIST_PAGES):
        request = ListToolsRequest(params=PaginatedRequestParams(cursor=cursor) if cursor else None)
        page = await session.send_request(request, ListToolsResult)
        listings += [
            McpToolListing(secrets.redact(t.name), secrets.redact(t.description or ""), secrets.redact(t.input_schema))
            for t in page.tools
        ]
        cursor = page.next_cursor
        if not cursor or len(listings) > MAX_TOOLS:
            break
    if cursor or len(listings) > MAX_TOOLS:
        return InvalidUrl(f"It lists more than {MAX_TOOLS} tools.")
    if len({tool.name for tool in listings}) < len(listings):
        return InvalidUrl("It lists two tools with the same name.")
    return tuple(listings)


async def _call_tool(
    session: "ClientSession", secrets: ServerSecrets, tool: str, arguments: dict[str, Any]
) -> McpToolResult | InvalidUrl:
    from mcp.shared.exceptions import MCPError
    from mcp_types import CallToolRequest, CallToolRequestParams, CallToolResult

    request = CallToolRequest(params=CallToolRequestParams(name=tool, arguments=arguments))
    try:
        result = await session.send_request(request, CallToolResult)
    except MCPError as error:
        if error.code in _AMBIGUOUS_ERROR_CODES:
            raise
        return McpToolResult(secrets.redact(error.message), True, ())
    return _result_from_protocol(result, secrets)


_AMBIGUOUS_ERROR_CODES = frozenset((-32000, -32001, -32600, -32601, -32603, -32700))
"""Error codes that servers send and that the library also generates for transport errors. Their messages are not used.
"""


def _result_from_protocol(result: "CallToolResult", secrets: ServerSecrets) -> McpToolResult:
    texts: list[str] = []
    omitted: list[str] = []
    for part in result.content:
        match part.type:
            case "text":
                texts.append(part.text)
            case "resource_link":
                texts.append(f"{part.name}: {part.uri}")
            case "resource" if (text := getattr(part.resource, "text", None)) is not None:
                texts.append(text)
            case kind:
                omitted.append(kind)
    if not texts and result.structured_content is not None:
        texts.append(orjson.dumps(result.structured_content, option=orjson.OPT_INDENT_2).decode())
    return McpToolResult(secrets.redact("\n\n".join(texts)), result.is_error, tuple(omitted))


def _describe_failure(transport: "BoundedTransport", error: Exception) -> str:
    """Describe a failure with nothing that the server sent and nothing that was sent to it."""
    return transport.problem or f"It does not answer as the protocol asks{_render_code(error)}."


def _render_code(error: Exception) -> str:
    code = getattr(_innermost_exception(error), "code", None)
    return f" (error {code})" if isinstance(code, int) else ""


def _innermost_exception(error: Exception) -> Exception:
    return (
        _innermost_exception(cast(ExceptionGroup[Exception], error).exceptions[0])
        if _is_exception_group(error)
        else error
    )


def _is_exception_group(error: Exception) -> bool:
    return isinstance(error, ExceptionGroup)


def _import_client() -> None:
    """Import the client off the event loop, because it takes a second, and disable its logging of server text."""
    for module in ("mcp.client.client", "mcp.client.streamable_http", "offing.mcp.transport"):
        import_module(module)
    for name in ("mcp", "client", "httpx2", "httpcore2"):
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)


def render_error(result: McpToolResult) -> str:
    """Return the error message of a tool, shortened. It is third-party text."""
    return shorten_line(sanitize_text(result.text), MAX_ERROR_CHARS)
