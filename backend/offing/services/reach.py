"""What a process has for reaching the web and MCP servers, as the operator has set it up.

The only home of which search engines are asked and which private places may be fetched from. Knows no run.
"""

import os
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import httpx

from offing.core.errors import InvalidInput
from offing.library.readers import Readers
from offing.mcp.catalogue import Catalogue
from offing.mcp.client import Asking
from offing.services.code import Codes, codes
from offing.settings import Settings
from offing.web.fetch import Fetcher
from offing.web.guard import Guard, resolve
from offing.web.pace import Pace
from offing.web.provider import Provider
from offing.web.providers.arxiv import ArXiv
from offing.web.providers.brave import Brave
from offing.web.providers.searxng import SearXNG
from offing.web.providers.tavily import Tavily

READING_SECONDS = 120.0
"""Maximum seconds that a page waits for the reader, which all runs of a process share."""


@dataclass(frozen=True, slots=True)
class Reach:
    """What a process has for reaching the web; see `opened`."""

    web: Fetcher
    readers: Readers
    engines: httpx.AsyncClient
    providers: Sequence[Provider] = ()
    """Search engines. Empty: searches find nothing, and say so."""
    asking: Asking | None = None
    """None: MCP servers are not asked."""
    servers: Catalogue = field(default_factory=Catalogue)
    """MCP servers that runs may use."""
    codes: Codes | None = None
    """None: no code is run."""


@asynccontextmanager
async def opened(settings: Settings) -> AsyncGenerator[Reach]:
    """Nothing is started or connected before it is needed. Raises InvalidInput for settings that cannot be used."""
    guard, providers = Guard(resolve, fetch_hosts(settings)), search_engines(settings)
    async with (
        Fetcher(guard, pace=Pace(exempt=guard.hosts)) as web,
        Readers(1, wait_seconds=READING_SECONDS) as readers,
        httpx.AsyncClient(follow_redirects=False) as engines,
        Asking(os.environ) as mcp,
        codes(settings) as sandbox,
    ):
        yield Reach(web, readers, engines, providers, mcp, Catalogue(settings.mcp), sandbox)


def search_engines(settings: Settings) -> Sequence[Provider]:
    """In the order in which they are named. Raises InvalidInput for one that is unknown or lacks its key."""
    ready = _set_up(settings)
    named = [name.strip() for name in settings.search.split(",") if name.strip()]
    for name in named:
        if name not in NEEDS:
            raise InvalidInput("OFFING_SEARCH", f"there is no search engine {name!r}", f"Use {', '.join(NEEDS)}.")
        if name not in ready:
            raise InvalidInput(NEEDS[name], f"is not set, and OFFING_SEARCH names {name}", "Set it, or leave it out.")
    if named:
        return [ready[name] for name in named]
    return [one for name, one in ready.items() if name != "arxiv"] or [ready["arxiv"]]


NEEDS = {"searxng": "SEARXNG_URL", "tavily": "TAVILY_API_KEY", "brave": "BRAVE_API_KEY", "arxiv": ""}


def _set_up(settings: Settings) -> dict[str, Provider]:
    found: dict[str, Provider] = {}
    if settings.searxng_url:
        found["searxng"] = SearXNG(settings.searxng_url)
    if settings.tavily_api_key is not None:
        found["tavily"] = Tavily(settings.tavily_api_key.get_secret_value())
    if settings.brave_api_key is not None:
        found["brave"] = Brave(settings.brave_api_key.get_secret_value())
    return {**found, "arxiv": ArXiv()}


def fetch_hosts(settings: Settings) -> frozenset[str]:
    """`host:port` that may be fetched from although they are not public. Raises InvalidInput for one without a port."""
    hosts = frozenset(text.strip().lower() for text in settings.fetch_hosts.split(",") if text.strip())
    for host in hosts:
        if not host.rpartition(":")[2].isdigit():
            raise InvalidInput("OFFING_FETCH_HOSTS", f"{host!r} names no port", "Write HOST:PORT, such as wiki:443.")
    return hosts
