"""Recorded web pages as the tools of a run see them: a fixed part of the web, which nothing is fetched for.

A batch pins the text of each page, so that all of its rollouts read the same one whatever the site says meanwhile.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from offing.core.scoring import tokenize_answer
from offing.storage import web_pages
from offing.storage.pool import Database
from offing.storage.web_pages import RecordedPageRow
from offing.tools.tool import TextWindow
from offing.web.provider import SearchHit
from offing.web.search import MergedHit, SearchResults
from offing.web.url import InvalidUrl, parse_url

ENGINE = "recorded"
"""Name under which hits among recorded pages are shown."""

SNIPPET_CHARS = 200


@dataclass(frozen=True, slots=True)
class RecordedPages:
    """The pages that a run may read, with the text of each."""

    database: Database
    tenant_id: UUID
    texts: Mapping[str, UUID]
    """Id of the pinned text, by URL."""

    async def read(self, url: str, start: int, length: int) -> TextWindow | str:
        """Return a window of a page's text, or a sentence that explains why it is unavailable."""
        target = parse_url(url)
        if isinstance(target, InvalidUrl):
            return target.problem
        text = self.texts.get(target.url)
        if text is None:
            return "This run reads only recorded pages, and this is none of them. Search to find one."
        async with self.database.transaction(self.tenant_id) as connection:
            row = await web_pages.find_recorded_window(connection, self.tenant_id, target.url, text, start, length)
        if row is None:
            return "The recorded text of this page is not kept any more."
        return TextWindow(
            row.source_id, row.text_id, row.title, row.name, start, row.text, row.text_length, row.published
        )

    async def search(self, query: str, limit: int) -> SearchResults:
        """Return at most `limit` recorded pages that contain words of the query, those with the most words first."""
        async with self.database.transaction(self.tenant_id) as connection:
            pages = await web_pages.list_recorded_pages(connection, self.tenant_id, self.texts)
        return SearchResults(rank_pages(pages, query)[:limit], {})


def rank_pages(pages: Sequence[RecordedPageRow], query: str) -> tuple[MergedHit, ...]:
    """Return the pages that contain words of the query: those with the most words first, equal ones by URL."""
    words = set(tokenize_answer(query))
    counts = {page.url: len(words.intersection(tokenize_answer(f"{page.title} {page.text}"))) for page in pages}
    ranked = sorted((page for page in pages if counts[page.url]), key=lambda page: (-counts[page.url], page.url))
    return tuple(MergedHit(SearchHit(one.url, one.title, one.text[:SNIPPET_CHARS]), (ENGINE,)) for one in ranked)
