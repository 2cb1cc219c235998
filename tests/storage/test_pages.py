"""Pages of the web: fetched over a real socket, read by a real reader, kept in a real database."""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any
from uuid import UUID

import httpx
import orjson
import pytest
from fpdf import FPDF

from offing.core.tool import Span
from offing.library.readers import Readers
from offing.services import library
from offing.services.pages import Pages
from offing.services.reach import Reach
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Database
from offing.tools.fetch_page import FetchArgs, FetchPage
from offing.tools.tool import ToolFailed, ToolScope, Window
from offing.tools.web_search import WebSearch, WebSearchArgs
from offing.web.providers.searxng import SearXNG
from tests.web.site import Reply, Site, redirect, running

TIDES = b"<html><head><title>Tides</title></head><body><main><h1>Tides</h1><p>The moon pulls the sea.</p></main></body>"


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with running() as site:
        site.pages = {"/tides": Reply(TIDES), "/old": redirect("/tides")}
        yield site


@pytest.fixture
async def pages(pool: Database, site: Site) -> AsyncIterator[Pages]:
    async with site.fetcher() as web, Readers(1) as readers, httpx.AsyncClient(trust_env=False) as engines:
        yield Pages(pool, LOCAL_TENANT, Reach(web, readers, engines))


async def read(pages: Pages, url: str, start: int = 0, length: int = 1000) -> Window:
    found = await pages.read(url, start, length)
    assert isinstance(found, Window), found
    return found


async def test_a_page_is_kept_as_it_was_and_can_be_cited(pages: Pages, pool: Database, site: Site) -> None:
    found = await read(pages, f"{site.url}/tides")
    assert (found.title, found.name) == ("Tides", f"{site.url}/tides")
    at = found.text.index("The moon")
    span = Span(found.artefact, at, at + 23)
    assert await library.texts_of(pool, LOCAL_TENANT, [span]) == ("The moon pulls the sea.",)
    around = await library.passage_in_context(pool, LOCAL_TENANT, span.artefact, span.start, span.end)
    assert (around.name, around.text) == (f"{site.url}/tides", "The moon pulls the sea.")


async def test_a_pdf_at_an_address_is_read_kept_and_cited_as_a_page_is(
    pages: Pages, pool: Database, site: Site
) -> None:
    paper = FPDF()
    paper.add_page()
    paper.set_font("helvetica", size=12)
    paper.multi_cell(0, 5, "The moon pulls the sea twice a day.")
    site.pages["/paper"] = Reply(bytes(paper.output()), headers={"Content-Type": "application/pdf"})
    found = await read(pages, f"{site.url}/paper")
    at = found.text.index("The moon")
    span = Span(found.artefact, at, at + 35)
    assert await library.texts_of(pool, LOCAL_TENANT, [span]) == ("The moon pulls the sea twice a day.",)


async def test_reading_on_asks_the_store_and_not_the_site(pages: Pages, site: Site) -> None:
    whole = await read(pages, f"{site.url}/old")
    parts = [await read(pages, whole.name, start, 10) for start in range(0, whole.total, 10)]
    assert "".join(part.text for part in parts) == whole.text
    assert len(site.asked) == 2


async def test_a_page_that_changed_leaves_what_was_cited_in_place(pages: Pages, pool: Database, site: Site) -> None:
    before = await read(pages, f"{site.url}/tides")
    async with pool.transaction(LOCAL_TENANT) as connection:
        await connection.execute("update source set added_at = added_at - interval '2 hours'")
    site.pages["/tides"] = Reply(TIDES.replace(b"moon", b"sun"))
    after = await read(pages, f"{site.url}/tides")
    assert ("sun" in after.text, after.source) == (True, before.source)
    kept = await library.texts_of(pool, LOCAL_TENANT, [Span(before.artefact, 0, before.total)])
    assert kept == (before.text,)
    assert (await library.passage_in_context(pool, LOCAL_TENANT, before.artefact, 0, 5)).source == before.source


async def test_no_search_of_the_library_finds_a_page_and_no_other_tenant_reads_it(
    pages: Pages, pool: Database, site: Site, other_tenant: UUID
) -> None:
    found = await read(pages, f"{site.url}/tides")
    assert await library.search(pool, LOCAL_TENANT, "moon sea", 5) == []
    assert await library.library_port(pool, LOCAL_TENANT).read(found.name, 0, 10) is None
    theirs = replace(pages, tenant=other_tenant)
    await read(theirs, f"{site.url}/tides")
    assert len(site.asked) == 2


async def test_a_page_is_read_in_the_encoding_that_its_server_names(pages: Pages, site: Site) -> None:
    body = "Žluťoučký kůň".encode("cp1250")
    site.pages["/horse"] = Reply(body, headers={"Content-Type": "text/plain; charset=windows-1250"})
    site.pages["/wrong"] = Reply("Grüße".encode(), headers={"Content-Type": "text/plain; charset=nonsense"})
    assert (await read(pages, f"{site.url}/horse")).text == "Žluťoučký kůň"
    assert (await read(pages, f"{site.url}/wrong")).text == "Grüße"


async def test_what_cannot_be_had_is_said_in_a_sentence(pages: Pages, site: Site) -> None:
    site.pages["/empty"] = Reply(b"<html><body></body></html>")
    assert await pages.read("http://127.0.0.1/", 0, 10) == (
        "127.0.0.1 is not on the public internet, and only public pages may be fetched."
    )
    assert await pages.read("ftp://x.example/", 0, 10) == (
        "Only addresses that begin with http:// or https:// can be fetched."
    )
    assert "no text" in str(await pages.read(f"{site.url}/empty", 0, 10))


def scope(pages: Pages | None) -> ToolScope:
    no_library: Any = None
    return ToolScope(LOCAL_TENANT, UUID(int=3), "key", no_library, web=pages)


async def test_the_tool_shows_a_window_that_can_become_evidence(pages: Pages, site: Site) -> None:
    output = await FetchPage()(FetchArgs(url=f"{site.url}/tides", length=12), scope(pages))
    artefact = UUID(str(output.content["artefact"]))
    assert output.spans == (Span(artefact, 0, 12),)
    assert (output.content["name"], output.content["next"]) == (f"{site.url}/tides", 12)
    assert FetchPage.spec.untrusted


async def test_the_tool_fails_in_words_without_the_web_and_past_the_end(pages: Pages, site: Site) -> None:
    with pytest.raises(ToolFailed, match="may not use the web"):
        await FetchPage()(FetchArgs(url=f"{site.url}/tides"), scope(None))
    with pytest.raises(ToolFailed, match="ends at character"):
        await FetchPage()(FetchArgs(url=f"{site.url}/tides", start=9999), scope(pages))
    with pytest.raises(ToolFailed, match="status 404"):
        await FetchPage()(FetchArgs(url=f"{site.url}/none"), scope(pages))


async def test_a_search_shows_addresses_that_can_be_fetched_and_nothing_to_cite(pages: Pages, site: Site) -> None:
    body = orjson.dumps(
        {"results": [{"url": f"{site.url}/tides", "title": "Tides", "content": "The <b>moon</b> pulls"}]}
    )
    site.pages["/search"] = Reply(body, headers={"Content-Type": "application/json"})
    engine = SearXNG(f"http://127.0.0.1:{site.port}")
    found = replace(pages, reach=replace(pages.reach, providers=(engine,)))
    output = await WebSearch()(WebSearchArgs(query="tides"), scope(found))
    shown = {"url": f"{site.url}/tides", "title": "Tides", "snippet": "The moon pulls", "found_by": ["searxng"]}
    assert output.content == {"results": [shown], "failed": {}}
    assert output.spans == ()
    assert (await read(found, f"{site.url}/tides")).title == "Tides"


async def test_a_search_without_an_engine_says_where_to_set_one_up(pages: Pages) -> None:
    with pytest.raises(ToolFailed, match="No search engine is set up"):
        await WebSearch()(WebSearchArgs(query="tides"), scope(pages))
