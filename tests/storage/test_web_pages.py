"""Pages of the web: fetched over a real socket, read by a real reader, kept in a real database."""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any
from uuid import UUID

import httpx
import orjson
import pytest
from fpdf import FPDF

from offing.core.tool import SourceSpan
from offing.core.web_domains import WebDomains
from offing.library.readers import DocumentReaderPool
from offing.services import library
from offing.services.tool_backends import ToolBackends
from offing.services.web_access import WebPageReader
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Database
from offing.tools.fetch_page import FetchPage, FetchPageArgs
from offing.tools.tool import TextWindow, ToolFailedError, ToolScope
from offing.tools.web_search import WebSearch, WebSearchArgs
from offing.web.providers.searxng import SearxngProvider
from tests.web.site import Reply, Site, redirect, running

TIDES = b"<html><head><title>Tides</title></head><body><main><h1>Tides</h1><p>The moon pulls the sea.</p></main></body>"


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with running() as site:
        site.pages = {"/tides": Reply(TIDES), "/old": redirect("/tides")}
        yield site


@pytest.fixture
async def pages(pool: Database, site: Site) -> AsyncIterator[WebPageReader]:
    async with site.fetcher() as web, DocumentReaderPool(1) as readers, httpx.AsyncClient(trust_env=False) as engines:
        yield WebPageReader(pool, LOCAL_TENANT, ToolBackends(web, readers, engines))


async def read(pages: WebPageReader, url: str, start: int = 0, length: int = 1000) -> TextWindow:
    result = await pages.read(url, start, length)
    assert isinstance(result, TextWindow), result
    return result


async def test_a_page_is_kept_as_it_was_and_can_be_cited(pages: WebPageReader, pool: Database, site: Site) -> None:
    result = await read(pages, f"{site.url}/tides")
    assert (result.title, result.name) == ("Tides", f"{site.url}/tides")
    at = result.text.index("The moon")
    span = SourceSpan(result.text_id, at, at + 23)
    assert await library.read_windows(pool, LOCAL_TENANT, [span]) == ("The moon pulls the sea.",)
    around = await library.get_passage_in_context(pool, LOCAL_TENANT, span.text_id, span.start, span.end)
    assert (around.name, around.text) == (f"{site.url}/tides", "The moon pulls the sea.")


async def test_a_pdf_at_an_address_is_read_kept_and_cited_as_a_page_is(
    pages: WebPageReader, pool: Database, site: Site
) -> None:
    paper = FPDF()
    paper.add_page()
    paper.set_font("helvetica", size=12)
    paper.multi_cell(0, 5, "The moon pulls the sea twice a day.")
    site.pages["/paper"] = Reply(bytes(paper.output()), headers={"Content-Type": "application/pdf"})
    result = await read(pages, f"{site.url}/paper")
    at = result.text.index("The moon")
    span = SourceSpan(result.text_id, at, at + 35)
    assert await library.read_windows(pool, LOCAL_TENANT, [span]) == ("The moon pulls the sea twice a day.",)


async def test_reading_on_asks_the_store_and_not_the_site(pages: WebPageReader, site: Site) -> None:
    whole = await read(pages, f"{site.url}/old")
    parts = [await read(pages, whole.name, start, 10) for start in range(0, whole.total_chars, 10)]
    assert "".join(part.text for part in parts) == whole.text
    assert len(site.requests) == 2


async def test_a_page_that_changed_leaves_what_was_cited_in_place(
    pages: WebPageReader, pool: Database, site: Site
) -> None:
    before = await read(pages, f"{site.url}/tides")
    async with pool.transaction(LOCAL_TENANT) as connection:
        await connection.execute("update source set added_at = added_at - interval '2 hours'")
    site.pages["/tides"] = Reply(TIDES.replace(b"moon", b"sun"))
    after = await read(pages, f"{site.url}/tides")
    assert ("sun" in after.text, after.source_id) == (True, before.source_id)
    stored = await library.read_windows(pool, LOCAL_TENANT, [SourceSpan(before.text_id, 0, before.total_chars)])
    assert stored == (before.text,)
    assert (
        await library.get_passage_in_context(pool, LOCAL_TENANT, before.text_id, 0, 5)
    ).source_id == before.source_id


async def test_no_search_of_the_library_finds_a_page_and_no_other_tenant_reads_it(
    pages: WebPageReader, pool: Database, site: Site, other_tenant: UUID
) -> None:
    result = await read(pages, f"{site.url}/tides")
    assert await library.search_passages(pool, LOCAL_TENANT, "moon sea", 5) == []
    assert await library.build_library_access(pool, LOCAL_TENANT).read(result.name, 0, 10) is None
    theirs = replace(pages, tenant_id=other_tenant)
    await read(theirs, f"{site.url}/tides")
    assert len(site.requests) == 2


async def test_a_page_is_read_in_the_encoding_that_its_server_names(pages: WebPageReader, site: Site) -> None:
    body = "Žluťoučký kůň".encode("cp1250")
    site.pages["/horse"] = Reply(body, headers={"Content-Type": "text/plain; charset=windows-1250"})
    site.pages["/wrong"] = Reply("Grüße".encode(), headers={"Content-Type": "text/plain; charset=nonsense"})
    assert (await read(pages, f"{site.url}/horse")).text == "Žluťoučký kůň"
    assert (await read(pages, f"{site.url}/wrong")).text == "Grüße"


async def test_what_cannot_be_had_is_said_in_a_sentence(pages: WebPageReader, site: Site) -> None:
    site.pages["/empty"] = Reply(b"<html><body></body></html>")
    assert await pages.read("http://127.0.0.1/", 0, 10) == (
        "127.0.0.1 is not on the public internet, and only public pages may be fetched."
    )
    assert await pages.read("ftp://x.example/", 0, 10) == (
        "Only addresses that begin with http:// or https:// can be fetched."
    )
    assert "no text" in str(await pages.read(f"{site.url}/empty", 0, 10))


def scope(pages: WebPageReader | None) -> ToolScope:
    no_library: Any = None
    return ToolScope(LOCAL_TENANT, UUID(int=3), "key", no_library, web=pages)


async def test_the_tool_shows_a_window_that_can_become_evidence(pages: WebPageReader, site: Site) -> None:
    output = await FetchPage()(FetchPageArgs(url=f"{site.url}/tides", length=12), scope(pages))
    text_id = UUID(str(output.content["text_id"]))
    assert output.spans == (SourceSpan(text_id, 0, 12),)
    assert (output.content["name"], output.content["next"]) == (f"{site.url}/tides", 12)
    assert FetchPage.spec.untrusted


async def test_the_tool_fails_in_words_without_the_web_and_past_the_end(pages: WebPageReader, site: Site) -> None:
    with pytest.raises(ToolFailedError, match="may not use the web"):
        await FetchPage()(FetchPageArgs(url=f"{site.url}/tides"), scope(None))
    with pytest.raises(ToolFailedError, match="ends at character"):
        await FetchPage()(FetchPageArgs(url=f"{site.url}/tides", start=9999), scope(pages))
    with pytest.raises(ToolFailedError, match="status 404"):
        await FetchPage()(FetchPageArgs(url=f"{site.url}/none"), scope(pages))


async def test_a_search_shows_addresses_that_can_be_fetched_and_nothing_to_cite(
    pages: WebPageReader, site: Site
) -> None:
    body = orjson.dumps(
        {"results": [{"url": f"{site.url}/tides", "title": "Tides", "content": "The <b>moon</b> pulls"}]}
    )
    site.pages["/search"] = Reply(body, headers={"Content-Type": "application/json"})
    engine = SearxngProvider(f"http://127.0.0.1:{site.port}")
    result = replace(pages, backends=replace(pages.backends, search_providers=(engine,)))
    output = await WebSearch()(WebSearchArgs(query="tides"), scope(result))
    rendered = {"url": f"{site.url}/tides", "title": "Tides", "snippet": "The moon pulls", "found_by": ["searxng"]}
    assert output.content == {"results": [rendered], "failed": {}}
    assert output.spans == ()
    assert (await read(result, f"{site.url}/tides")).title == "Tides"


async def test_a_search_without_an_engine_says_where_to_set_one_up(pages: WebPageReader) -> None:
    with pytest.raises(ToolFailedError, match="No search engine is set up"):
        await WebSearch()(WebSearchArgs(query="tides"), scope(pages))


async def test_a_page_keeps_its_author_and_date_and_one_of_before_gets_them_when_it_is_fetched_again(
    pages: WebPageReader, pool: Database, site: Site
) -> None:
    head = b"<head><meta name=author content='Ann Lee'><meta property=article:published_time content=2024-03-05T08:00Z>"
    site.pages["/tides"] = Reply(TIDES.replace(b"<head>", head))
    columns = "select author, published, page_starts from extracted_text"
    assert (await read(pages, f"{site.url}/tides")).published == "2024-03-05"
    async with pool.transaction(LOCAL_TENANT) as connection:
        assert await (await connection.execute(columns)).fetchall() == [("Ann Lee", "2024-03-05", [])]
        await connection.execute("update extracted_text set author = null, published = null, page_starts = null")
        await connection.execute("update source set added_at = added_at - interval '1 day'")
    await read(pages, f"{site.url}/tides")
    async with pool.transaction(LOCAL_TENANT) as connection:
        assert await (await connection.execute(columns)).fetchall() == [("Ann Lee", "2024-03-05", [])]


async def test_a_page_outside_the_domains_of_the_run_is_neither_requested_nor_read_from_the_store(
    pages: WebPageReader, site: Site
) -> None:
    await read(pages, f"{site.url}/tides")
    count = len(site.requests)
    for domains in (WebDomains(only=("example.org",)), WebDomains(excluded=("public.example",))):
        problem = await replace(pages, domains=domains).read(f"{site.url}/tides", 0, 100)
        assert isinstance(problem, str)
        assert problem.startswith("This run may")
    assert len(site.requests) == count
    await read(replace(pages, domains=WebDomains(only=("example", "public.example"))), f"{site.url}/tides")


async def test_a_redirect_does_not_lead_out_of_the_domains_of_the_run(pages: WebPageReader, site: Site) -> None:
    site.pages["/away"] = redirect(f"http://127.0.0.1:{site.canary}/tides")
    problem = await replace(pages, domains=WebDomains(only=("public.example",))).read(f"{site.url}/away", 0, 100)
    assert problem == "This run may use only public.example."
    assert site.touched == []


async def test_a_search_returns_only_pages_within_the_domains_of_the_run(pages: WebPageReader, site: Site) -> None:
    urls = ["https://example.org/a", "https://docs.example.org/b", "https://other.net/c"]
    results = [{"url": url, "title": url, "content": "tides"} for url in urls]
    site.pages["/search"] = Reply(orjson.dumps({"results": results}), headers={"Content-Type": "application/json"})
    engines = replace(pages.backends, search_providers=[SearxngProvider(f"http://127.0.0.1:{site.port}")])
    limited = replace(pages, backends=engines, domains=WebDomains(("example.org",), ("docs.example.org",)))
    assert [one.hit.url for one in (await limited.search("tides", 5)).hits] == urls[:1]
