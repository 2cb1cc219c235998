"""A search of recorded pages: by the words of the pinned texts, with as many statements for many pages as for few."""

from collections.abc import AsyncIterator
from dataclasses import replace
from uuid import UUID

import psycopg
import pytest

from offing.clock import new_id
from offing.library.document_index import NO_POSTINGS, NOT_INDEXED
from offing.library.readers import ParsedDocument
from offing.services import recorded_pages
from offing.services.document_storage import store_unindexed
from offing.services.recorded_pages import RecordedPages
from offing.storage import web_pages
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Database
from tests.workers.wire_trace import TracedDatabase

SEA = {
    "https://example.org/a": ("Tides", "The sea rises."),
    "https://example.org/b": ("Moon", "The moon pulls the sea."),
    "https://example.org/c": ("Bread", "Flour and water."),
}


async def record(
    database: Database, pages: dict[str, tuple[str, str]], tenant_id: UUID = LOCAL_TENANT
) -> RecordedPages:
    """The pages with the texts that they have now, as runs have read them."""
    texts = dict[str, UUID]()
    async with database.transaction(tenant_id) as connection:
        for url, (title, text) in pages.items():
            document = ParsedDocument(text, title, "text/html", "test 1", NOT_INDEXED, (), NO_POSTINGS)
            texts[url] = await store_unindexed(connection, tenant_id, f"{title}\n{text}".encode(), document)
            await web_pages.upsert_page(
                connection, tenant_id, source_id=new_id(), url=url, title=title, text_id=texts[url]
            )
    return RecordedPages(database, tenant_id, texts)


async def search(pages: RecordedPages, query: str, limit: int = 10) -> list[str]:
    return [one.hit.url[-1] for one in (await pages.search(query, limit)).hits]


async def test_pages_are_found_by_words_of_title_and_text_those_with_the_most_first(pool: Database) -> None:
    pages = await record(pool, SEA)
    assert await search(pages, "Does the moon pull the sea?") == ["b", "a"]
    assert await search(pages, "TIDES!") == ["a"]
    assert await search(pages, "the sea", limit=1) == ["a"], "equal ones by URL"
    assert await search(pages, "nothing like it") == []
    assert await search(pages, "") == []
    (hit,) = (await pages.search("flour", 5)).hits
    assert (hit.hit.title, hit.hit.snippet, hit.engines) == ("Bread", "Flour and water.", ("recorded",))


async def test_a_run_finds_its_pinned_texts_alone(pool: Database, other_tenant: UUID) -> None:
    first = await record(pool, SEA)
    assert await search(first, "moon") == ["b"]
    second = await record(pool, {"https://example.org/b": ("Moon", "The sun does it."), "https://e.org/d": ("", "sun")})
    assert await search(second, "sun") == ["d", "b"]
    assert await search(second, "sea") == []
    assert await search(first, "sun") == [], "the text of its batch, whatever the page says now"
    assert await search(replace(first, tenant_id=other_tenant), "moon") == []


async def test_a_text_of_one_very_long_word_is_found(pool: Database) -> None:
    pages = await record(pool, {"https://example.org/a": ("", "潮" * 5_000)})
    assert await search(pages, "潮" * 4_000) == ["a"]


async def test_the_words_of_an_erased_text_are_erased(pool: Database, owner_url: str) -> None:
    pages = await record(pool, SEA)
    await search(pages, "moon")
    with psycopg.connect(owner_url) as owner:
        owner.execute("delete from app.extracted_text where id = %s", (pages.texts["https://example.org/b"],))
        words = {word for (word,) in owner.execute("select word from app.recorded_word").fetchall()}
    assert "moon" not in words
    assert "flour" in words


@pytest.fixture
async def traced(app_url: str) -> AsyncIterator[TracedDatabase]:
    async with TracedDatabase(app_url, max_connections=1) as database:
        yield database


async def test_a_search_takes_as_many_statements_for_many_pages_as_for_few_and_reads_no_text_again(
    traced: TracedDatabase,
) -> None:
    async def measure(count: int) -> tuple[int, int]:
        """Statements and kilobytes of one search among this number of pages."""
        long = "tide and wave " * 2_000
        urls = {f"https://example.org/{count}/{n}": (f"Page {n}", f"{count} {n} {long}") for n in range(count)}
        pages = await record(traced, urls)
        await pages.search("tide wave", 5)
        traced.take_trips()
        assert len((await pages.search("tide wave", 5)).hits) == min(count, 5)
        kilobytes = sum(map(len, traced.messages)) // 1000
        return traced.take_trips().statements, kilobytes

    few, many = await measure(3), await measure(40)
    print(f"statements, kB: {few} for 3 pages, {many} for 40")
    assert many[0] == few[0]
    assert many[1] < 28, "each text has 28 kB"


async def test_words_are_stored_in_portions(pool: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorded_pages, "MAX_INDEXED_TEXTS", 2)
    pages = await record(pool, {f"https://example.org/{n}": ("", f"sea {n}") for n in range(5)})
    assert await search(pages, "sea") == ["0", "1", "2", "3", "4"]
