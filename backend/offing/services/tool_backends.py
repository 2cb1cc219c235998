"""Open the backends of tools in a process: web, document readers, search engines, MCP client and code runner.

The operator's settings choose the search engines and the private hosts that may be fetched.
"""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import httpx
from pydantic import SecretStr

from offing import environment
from offing.core.errors import InvalidInput
from offing.library.readers import DocumentReaderPool
from offing.mcp.client import McpClient
from offing.mcp.server_registry import McpServerRegistry
from offing.services.code_execution import CodeRunner, open_code_runner
from offing.settings import Settings
from offing.web.fetch import Fetcher
from offing.web.guard import AddressGuard, resolve_host
from offing.web.provider import SEARCH_ENGINES, SearchProvider
from offing.web.rate_limiter import SiteRateLimiter

READER_WAIT_SECONDS = 120.0
"""Maximum seconds that a page waits for a document reader, which all runs of a process share."""


@dataclass(frozen=True, slots=True)
class ToolBackends:
    """The process-wide clients behind tools. See `open_tool_backends`."""

    fetcher: Fetcher
    document_readers: DocumentReaderPool
    search_client: httpx.AsyncClient
    search_providers: Sequence[SearchProvider] = ()
    """Search engines. Empty means that searches return an explanation instead of results."""
    mcp_client: McpClient | None = None
    """The MCP client. `None` means that no MCP server can be called."""
    mcp_servers: McpServerRegistry = field(default_factory=McpServerRegistry)
    """MCP servers that runs may use."""
    code_runner: CodeRunner | None = None
    """The code runner. `None` means that no code is run."""


@asynccontextmanager
async def open_tool_backends(settings: Settings) -> AsyncGenerator[ToolBackends]:
    """Open the tool backends. Each connects or starts when it is first needed.

    Raises InvalidInput for invalid settings.
    """
    guard, providers = AddressGuard(resolve_host, parse_fetch_hosts(settings)), build_search_providers(settings)
    async with (
        Fetcher(guard, rate_limiter=SiteRateLimiter(exempt_sites=guard.allowed_hosts)) as web,
        DocumentReaderPool(1, max_wait_seconds=READER_WAIT_SECONDS) as readers,
        httpx.AsyncClient(follow_redirects=False) as engines,
        McpClient(environment.VARIABLES) as mcp,
        open_code_runner(settings) as sandbox,
    ):
        yield ToolBackends(web, readers, engines, providers, mcp, McpServerRegistry(settings.mcp_config), sandbox)


def build_search_providers(
    settings: Settings, env: Mapping[str, str] = environment.VARIABLES
) -> Sequence[SearchProvider]:
    """Return the search engines that the settings name, in their order.

    If they name none, these are the engines whose variable is set, or those without one if none is set. Raises
    InvalidInput if a named one is unknown or its variable is not set.
    """
    named = [name.strip() for name in settings.search_engines.split(",") if name.strip()]
    if named:
        return [_build_named_provider(name, settings, env) for name in named]
    engines = list(SEARCH_ENGINES.values())
    configured = [one.create(value) for one in engines if (value := _find_value(one.variable, settings, env))]
    return configured or [one.create("") for one in engines if not one.variable]


def _build_named_provider(name: str, settings: Settings, env: Mapping[str, str]) -> SearchProvider:
    engine = SEARCH_ENGINES.get_named(name, "OFFING_SEARCH_ENGINES")
    value = _find_value(engine.variable, settings, env)
    if engine.variable and not value:
        problem = f"is not set, but OFFING_SEARCH_ENGINES contains {name}"
        raise InvalidInput(engine.variable, problem, f"Set it, or remove {name} from OFFING_SEARCH_ENGINES.")
    return engine.create(value)


def _find_value(variable: str, settings: Settings, env: Mapping[str, str]) -> str:
    """Return the value of a variable from the settings, or else from the environment. Empty if it is not set."""
    value = getattr(settings, variable.lower(), None) or env.get(variable, "")
    return value.get_secret_value() if isinstance(value, SecretStr) else str(value)


def parse_fetch_hosts(settings: Settings) -> frozenset[str]:
    """Return the `host:port` entries that may be fetched although they are not public.

    Raises InvalidInput without a port.
    """
    hosts = frozenset(text.strip().lower() for text in settings.allowed_fetch_hosts.split(",") if text.strip())
    for host in hosts:
        if not host.rpartition(":")[2].isdigit():
            raise InvalidInput(
                "OFFING_ALLOWED_FETCH_HOSTS", f"{host!r} has no port", "Write HOST:PORT, such as wiki:443."
            )
    return hosts
