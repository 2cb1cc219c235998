"""Search engines over their own wires, spoken by a server on loopback, and how their lists become one."""

from collections.abc import AsyncGenerator, Sequence

import httpx
import orjson
import pytest

from offing.web.provider import SearchHit, SearchProvider
from offing.web.providers.arxiv import ArxivProvider
from offing.web.providers.brave import BraveProvider
from offing.web.providers.searxng import SearxngProvider
from offing.web.providers.tavily import TavilyProvider
from offing.web.search import MergedHit, SearchResults, merge_hits, page_identity, search_web
from tests.web.site import Reply, Site, redirect, running

JSON = {"Content-Type": "application/json"}
KEY = "key-that-nobody-may-see"

SEARXNG = {
    "query": "tides",
    "results": [
        {
            "url": "https://a.example/1",
            "title": "A &amp; B",
            "content": "The <em>sea</em>",
            "publishedDate": "2026-01-02",
        },
        {"url": "https://a.example/2", "title": "Two", "content": None},
    ],
}
TAVILY = {"results": [{"url": "https://a.example/1", "title": "A", "content": "rise", "score": 0.9}]}
BRAVE = {
    "type": "search",
    "web": {"results": [{"url": "https://a.example/3", "title": "C", "description": "fall", "page_age": "2025-05-05"}]},
}
ARXIV = """<?xml version="1.0"?><feed xmlns="http://www.w3.org/2005/Atom"><entry>
  <id>http://arxiv.org/abs/2601.00001v1</id><title>On\n Tides</title><summary> They rise. </summary>
  <published>2026-01-01T00:00:00Z</published></entry></feed>"""


@pytest.fixture
async def site() -> AsyncGenerator[Site]:
    async with running() as site:
        site.pages = {
            "/search": Reply(orjson.dumps(SEARXNG), headers=JSON),
            "/res/v1/web/search": Reply(orjson.dumps(BRAVE), headers=JSON),
            "/api/query": Reply(ARXIV.encode(), headers={"Content-Type": "application/atom+xml"}),
        }
        yield site


async def search_with(site: Site, *providers: SearchProvider, query: str = "tides", limit: int = 8) -> SearchResults:
    async with httpx.AsyncClient(trust_env=False) as client:
        return await search_web(client, providers, query, limit)


def at(site: Site) -> str:
    return f"http://127.0.0.1:{site.port}"


async def test_searxng_is_asked_for_json_and_its_markup_is_taken_off(site: Site) -> None:
    searched = await search_with(site, SearxngProvider(at(site)))
    assert [one.hit for one in searched.hits] == [
        SearchHit("https://a.example/1", "A & B", "The sea", "2026-01-02"),
        SearchHit("https://a.example/2", "Two"),
    ]
    assert site.requests[0].startswith("GET /search?q=tides&format=json ")


async def test_tavily_is_asked_by_post_with_its_key_in_a_header(site: Site) -> None:
    site.pages["/search"] = Reply(orjson.dumps(TAVILY), headers=JSON)
    searched = await search_with(site, TavilyProvider(KEY, at(site)), limit=50)
    assert searched.hits == (MergedHit(SearchHit("https://a.example/1", "A", "rise"), ("tavily",)),)
    head, _, body = site.requests[0].partition("\r\n\r\n")
    assert f"Authorization: Bearer {KEY}" in head
    assert orjson.loads(body) == {"query": "tides", "max_results": 20}


async def test_brave_is_asked_with_its_token(site: Site) -> None:
    searched = await search_with(site, BraveProvider(KEY, at(site)))
    assert [one.hit for one in searched.hits] == [SearchHit("https://a.example/3", "C", "fall", "2025-05-05")]
    assert f"X-Subscription-Token: {KEY}" in site.requests[0]
    site.pages["/res/v1/web/search"] = Reply(orjson.dumps({"type": "search"}), headers=JSON)
    assert await search_with(site, BraveProvider(KEY, at(site))) == SearchResults((), {})


async def test_arxiv_is_asked_for_words_and_its_feed_is_read(site: Site) -> None:
    searched = await search_with(site, ArxivProvider(at(site)), query='"tides" AND moon:sea (x)')
    assert [one.hit for one in searched.hits] == [
        SearchHit(
            "https://arxiv.org/abs/2601.00001v1",
            "On Tides",
            "They rise.",
            "2026-01-01",
            ("doi:10.48550/arxiv.2601.00001",),
        )
    ]
    assert "search_query=all%3Atides+OR+all%3AAND+OR+all%3Amoon+OR+all%3Asea+OR+all%3Ax" in site.requests[0]


async def test_a_feed_cannot_name_a_file_to_be_read(site: Site) -> None:
    hostile = '<!DOCTYPE f [<!ENTITY x SYSTEM "file:///etc/passwd">]>' + ARXIV.partition("?>")[2].replace("rise", "&x;")
    site.pages["/api/query"] = Reply(hostile.encode(), headers=JSON)
    searched = await search_with(site, ArxivProvider(at(site)))
    assert all("root" not in one.hit.snippet for one in searched.hits)


async def test_an_engine_that_fails_is_named_beside_what_the_others_found(site: Site) -> None:
    site.pages["/res/v1/web/search"] = Reply(b"<html>", headers=JSON)
    site.pages["/api/query"] = Reply(status="429 Too Many Requests")
    searched = await search_with(
        site,
        SearxngProvider(at(site)),
        BraveProvider(KEY, at(site)),
        ArxivProvider(at(site)),
        TavilyProvider(KEY, "http://127.0.0.1:1"),
    )
    assert len(searched.hits) == 2
    assert searched.failed == {
        "brave": "Its answer cannot be read.",
        "arxiv": "It asks to wait; its limit is reached.",
        "tavily": "It cannot be reached.",
    }


@pytest.mark.parametrize(
    "body", [b"[]", b"{}", b'{"results": 3}', b'{"results": [{"title": "x"}]}', b'{"results": [{"url": 7}]}']
)
async def test_an_answer_of_another_shape_is_a_failure_and_not_a_crash(site: Site, body: bytes) -> None:
    site.pages["/search"] = Reply(body, headers=JSON)
    searched = await search_with(site, SearxngProvider(at(site)))
    assert searched == SearchResults((), {"searxng": "Its answer cannot be read."})


async def test_a_redirect_of_an_engine_reaches_nobody(site: Site) -> None:
    async with running() as other:
        for path in ("/search", "/res/v1/web/search", "/api/query"):
            site.pages[path] = redirect(f"http://127.0.0.1:{other.port}/", "307 Temporary Redirect")
        site.pages["/"] = redirect(f"http://127.0.0.1:{other.port}/", "308 Permanent Redirect")
        engines = (
            SearxngProvider(at(site)),
            BraveProvider(KEY, at(site)),
            ArxivProvider(at(site)),
            TavilyProvider(KEY, at(site)),
        )
        searched = await search_with(site, *engines)
    assert other.requests == []
    assert len(searched.failed) == len(engines)
    assert all("redirect" in why for why in searched.failed.values())


async def test_an_answer_without_end_is_cut_off(site: Site) -> None:
    site.pages["/search"] = Reply(b" " * 2_100_000, headers=JSON)
    assert "larger than" in (await search_with(site, SearxngProvider(at(site)))).failed["searxng"]


def test_no_repr_shows_a_key() -> None:
    for provider in (TavilyProvider(KEY), BraveProvider(KEY)):
        assert KEY not in f"{provider!r}{provider.build_request('q', 1)!r}"


def hits(*urls: str) -> Sequence[SearchHit]:
    return [SearchHit(url, url) for url in urls]


def test_pages_that_several_engines_found_come_first_and_once() -> None:
    lists = {
        "one": hits("https://a.example/", "https://b.example/"),
        "two": hits("https://c.example/", "https://b.example"),
    }
    result = merge_hits(lists, 10)
    assert [one.hit.url for one in result] == ["https://b.example/", "https://a.example/", "https://c.example/"]
    assert result[0].engines == ("one", "two")
    assert len(merge_hits(lists, 2)) == 2


def test_an_engine_that_repeats_itself_has_one_vote() -> None:
    lists = {
        "one": hits("https://a.example/", "https://a.example/#x", "https://a.example/?utm_source=y"),
        "two": hits("https://b.example/"),
    }
    assert [(one.hit.url, one.engines) for one in merge_hits(lists, 10)] == [
        ("https://a.example/", ("one",)),
        ("https://b.example/", ("two",)),
    ]


def test_an_address_that_cannot_be_fetched_is_no_result() -> None:
    assert merge_hits({"one": hits("javascript:alert(1)", "http://127.1/", "ftp://a.example/")}, 10) == ()


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("http://www.a.example/x/", "https://a.example/x", True),
        ("https://a.example/?id=1&utm_medium=mail", "https://a.example/?id=1", True),
        ("https://a.example/?id=1", "https://a.example/?id=2", False),
        ("https://a.example/x", "https://a.example/X", False),
        ("https://a.example:8443/", "https://a.example/", False),
    ],
)
def test_two_addresses_of_one_page(one: str, other: str, same: bool) -> None:
    assert (page_identity(one) == page_identity(other)) is same
