"""Open the backends of tools in a process: web, document readers, search engines, MCP client and code runner.

The operator's settings choose the search engines and the private hosts that may be fetched.
"""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import httpx
from pydantic import SecretStr

from offing import environment
from offing.certificates import load_ssl_context
from offing.core.errors import InvalidInput
from offing.library.readers import DocumentReaderPool
from offing.mcp.client import McpClient
from offing.mcp.server_registry import McpServerRegistry
from offing.services.code_execution import CodeRunner, open_code_runner
from offing.services.library_models import NO_MODELS, LibraryModels, open_library_models
from offing.settings import Settings
from offing.web.fetch import Fetcher
from offing.web.guard import AddressGuard, resolve_host
from offing.web.provider import SEARCH_ENGINES, SearchEngine, SearchProvider
from offing.web.rate_limiter import SiteRateLimiter

READER_WAIT_SECONDS = 120.0
"""Maximum seconds that a page waits for a document reader, which all runs of a process share."""

MAX_CONCURRENT_SEARCHES = 1
MAX_SEARCHES_PER_MINUTE = 20
"""Maximum requests per minute of this process to each search engine without a key. arXiv allows one request every
three seconds.
"""


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
    search_rate_limiter: SiteRateLimiter | None = None
    """Limits the requests to search engines. `None` means no limit."""
    library_models: LibraryModels = NO_MODELS
    """The models that searches of the library use."""


@asynccontextmanager
async def open_tool_backends(settings: Settings) -> AsyncGenerator[ToolBackends]:
    """Open the tool backends. Each connects or starts when it is first needed.

    Raises InvalidInput for invalid settings.
    """
    guard, providers = AddressGuard(resolve_host, parse_fetch_hosts(settings)), build_search_providers(settings)
    async with (
        Fetcher(guard, rate_limiter=SiteRateLimiter(exempt_sites=guard.allowed_hosts)) as web,
        DocumentReaderPool(1, max_wait_seconds=READER_WAIT_SECONDS) as readers,
        httpx.AsyncClient(follow_redirects=False, verify=load_ssl_context()) as engines,
        McpClient(environment.VARIABLES) as mcp,
        open_code_runner(settings) as sandbox,
    ):
        servers, limiter = McpServerRegistry(settings.mcp_config), build_search_rate_limiter(providers)
        models = open_library_models(settings)
        yield ToolBackends(web, readers, engines, providers, mcp, servers, sandbox, limiter, models)


def build_search_providers(
    settings: Settings, env: Mapping[str, str] = environment.VARIABLES
) -> Sequence[SearchProvider]:
    """Return the search engines that the settings name, in their order.

    If they name none, these are the engines whose required variables are set, or those that need none if there is
    no such engine. Raises InvalidInput if a named one is unknown or a variable of it is not set.
    """
    named = [name.strip() for name in settings.search_engines.split(",") if name.strip()]
    if named:
        return [build_named_provider(name, settings, env) for name in named]
    engines = [(one, find_engine_values(one, settings, env)) for one in SEARCH_ENGINES.values()]
    configured = [one.create(*values) for one, values in engines if not one.works_without_key and all(values)]
    return configured or [_build_keyless_provider(one, values) for one, values in engines if one.works_without_key]


def build_search_rate_limiter(providers: Sequence[SearchProvider]) -> SiteRateLimiter:
    """Return the limiter of requests to search engines, by name.

    Engines that the operator configures are exempt.
    """
    engines = {one.name: SEARCH_ENGINES.get(one.name) for one in providers}
    exempt = frozenset(name for name, engine in engines.items() if engine and not engine.works_without_key)
    return SiteRateLimiter(MAX_CONCURRENT_SEARCHES, MAX_SEARCHES_PER_MINUTE, exempt)


def build_named_provider(name: str, settings: Settings, env: Mapping[str, str]) -> SearchProvider:
    """Return the engine of this name. Raises InvalidInput if it is unknown or a variable of it is not set."""
    engine = SEARCH_ENGINES.get_named(name, "OFFING_SEARCH_ENGINES")
    values = find_engine_values(engine, settings, env)
    if engine.works_without_key:
        return _build_keyless_provider(engine, values)
    for variable, value in zip(engine.variables, values, strict=True):
        if not value:
            problem = f"is not set, but OFFING_SEARCH_ENGINES contains {name}"
            raise InvalidInput(variable, problem, f"Set it, or remove {name} from OFFING_SEARCH_ENGINES.")
    return engine.create(*values)


def _build_keyless_provider(engine: SearchEngine, values: Sequence[str]) -> SearchProvider:
    """Create an engine that works without its variables. An engine without variables gets an empty value."""
    return engine.create(*values or ("",))


def find_engine_values(engine: SearchEngine, settings: Settings, env: Mapping[str, str]) -> Sequence[str]:
    """Return the value of each variable of an engine. Empty for a variable that is not set."""
    return [_find_value(variable, settings, env) for variable in engine.variables]


def _find_value(variable: str, settings: Settings, env: Mapping[str, str]) -> str:
    """Return the value of a variable from the settings, or else from the environment. Empty if it is not set."""
    value = getattr(settings, variable.lower(), None) or env.get(variable, "")
    return value.get_secret_value() if isinstance(value, SecretStr) else str(value)


def parse_fetch_hosts(settings: Settings) -> frozenset[str]:
    """Return the `host:port` entries that may be fetched although they are not public.

    Raises InvalidInput without a port.
    """
    return parse_hosts("OFFING_ALLOWED_FETCH_HOSTS", settings.allowed_fetch_hosts)


def parse_hosts(variable: str, text: str) -> frozenset[str]:
    """Return the `host:port` entries of a variable. Raises InvalidInput without a port."""
    hosts = frozenset(part.strip().lower() for part in text.split(",") if part.strip())
    for host in hosts:
        if not host.rpartition(":")[2].isdigit():
            raise InvalidInput(variable, f"{host!r} has no port", "Write HOST:PORT, such as wiki:443.")
    return hosts
