"""Engines with small pages are read page by page when a search asks for more results than a page holds."""

from typing import Any

import httpx
import orjson

from offing.web.provider import SearchProvider
from offing.web.providers.google_pse import GooglePseProvider
from offing.web.providers.searxng import SearxngProvider
from offing.web.search import SearchResults, search_web

GOOGLE = GooglePseProvider("key", "engine-1", base="http://google.example")

SEARXNG = SearxngProvider("http://searx.example")


def google_page(first: int, count: int) -> dict[str, Any]:
    items = [{"link": f"https://a.example/{n}", "title": f"Page {n}"} for n in range(first, first + count)]
    return {"kind": "customsearch#search", "items": items}


class PagedSite:
    """An engine without a server: returns the pages in order, and notes the parameters of the requests."""

    def __init__(self, *pages: Any) -> None:
        self.pages = list(pages)
        self.queries: list[dict[str, str]] = []

    async def __call__(self, request: httpx.Request) -> httpx.Response:
        self.queries.append(dict(request.url.params))
        page = self.pages.pop(0)
        if isinstance(page, int):
            return httpx.Response(page)
        return httpx.Response(200, content=orjson.dumps(page))


async def search_pages(site: PagedSite, engine: SearchProvider, limit: int) -> SearchResults:
    async with httpx.AsyncClient(transport=httpx.MockTransport(site)) as client:
        return await search_web(client, [engine], "tides", limit)


async def test_a_search_for_more_than_a_page_of_google_reads_the_next_page() -> None:
    site = PagedSite(google_page(1, 10), google_page(11, 5))
    results = await search_pages(site, GOOGLE, 15)
    assert [one.hit.title for one in results.hits] == [f"Page {n}" for n in range(1, 16)]
    assert results.failed == {}
    assert [(one["num"], one.get("start")) for one in site.queries] == [("10", None), ("5", "11")]


async def test_a_page_that_is_not_full_is_the_last_one() -> None:
    site = PagedSite(google_page(1, 7))
    assert len((await search_pages(site, GOOGLE, 20)).hits) == 7
    assert len(site.queries) == 1


async def test_a_page_with_enough_results_is_the_last_one() -> None:
    site = PagedSite(google_page(1, 10))
    assert len((await search_pages(site, GOOGLE, 10)).hits) == 10
    assert len(site.queries) == 1


async def test_results_before_a_failed_page_are_kept_and_the_failure_is_reported() -> None:
    results = await search_pages(PagedSite(google_page(1, 10), 429), GOOGLE, 20)
    assert len(results.hits) == 10
    assert results.failed == {"google_pse": "It asks to wait; its limit is reached."}


def searxng_page(number: int, count: int) -> dict[str, Any]:
    return {"results": [{"url": f"https://a.example/{number}/{n}"} for n in range(count)]}


async def test_a_searxng_is_asked_for_at_most_three_pages() -> None:
    site = PagedSite(*(searxng_page(number, 10) for number in range(4)))
    assert len((await search_pages(site, SEARXNG, 50)).hits) == 30
    assert [one.get("pageno") for one in site.queries] == [None, "2", "3"]


async def test_an_empty_page_is_the_last_one() -> None:
    site = PagedSite(searxng_page(1, 25), searxng_page(2, 0))
    assert len((await search_pages(site, SEARXNG, 50)).hits) == 25
    assert len(site.queries) == 2


async def test_a_searxng_with_few_results_is_asked_once() -> None:
    site = PagedSite(searxng_page(1, 1))
    assert len((await search_pages(site, SEARXNG, 20)).hits) == 1
    assert len(site.queries) == 1
