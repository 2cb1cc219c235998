"""The web: pages per second of a synthetic world's site, fetched through the guard, and fetched and read.

The site is in this process and responds from memory, so Offing's code and the server's share are measured. The bare
value is for the same pages with httpx alone.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence

import httpx

from offing.library.readers import DocumentReaderPool
from offing.services.web_access import FILE_NAMES
from offing.web.fetch import FetchedPage, Fetcher
from offing_world.facts import world_from_name
from offing_world.site import WorldSite as WorldSite
from tests.bench.measurement import Measurement, Samples
from tests.web.site import Reply, running

WORLD = "heldout-8@200"
PAGES = 200
AT_ONCE = 16
REPEATS = 5


def pages_speed() -> list[Measurement]:
    return asyncio.run(_measured())


async def _measured() -> list[Measurement]:
    world, paths = WorldSite(world_from_name(WORLD)), [f"/page/{number}" for number in range(PAGES)]
    async with running() as site, DocumentReaderPool() as readers, httpx.AsyncClient(trust_env=False) as bare:
        replies = {path: world.build_response(path, {}) for path in paths}
        kinds = {path: {"Content-Type": f"{reply.media_type}; charset=utf-8"} for path, reply in replies.items()}
        site.pages = {path: Reply(reply.text.encode(), headers=kinds[path]) for path, reply in replies.items()}
        async with site.fetcher() as web:

            async def fetched(path: str) -> None:
                await _page(web, f"{site.url}{path}")

            async def read(path: str) -> None:
                page = await _page(web, f"{site.url}{path}")
                await readers.read(FILE_NAMES.get(page.media_type, "page.txt"), page.body)

            async def plainly(path: str) -> None:
                (await bare.get(f"http://127.0.0.1:{site.port}{path}")).raise_for_status()

            alone, whole, without = [await _rate(work, paths) for work in (fetched, read, plainly)]
    return [
        Measurement("web: pages fetched through the guard; bare: by httpx", alone, "pages/s", without),
        Measurement("web: pages fetched and read", whole, "pages/s"),
    ]


async def _page(web: Fetcher, url: str) -> FetchedPage:
    page = await web.fetch(url)
    assert isinstance(page, FetchedPage), page
    return page


async def _rate(work: Callable[[str], Awaitable[None]], paths: Sequence[str]) -> Samples:
    """Return the pages per second of several rounds, after one that is not counted."""
    room, rates = asyncio.Semaphore(AT_ONCE), list[float]()

    async def one(path: str) -> None:
        async with room:
            await work(path)

    for _ in range(REPEATS + 1):
        began = time.perf_counter()
        await asyncio.gather(*map(one, paths))
        rates.append(len(paths) / (time.perf_counter() - began))
    return tuple(rates[1:])
