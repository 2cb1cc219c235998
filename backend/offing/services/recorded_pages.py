"""Recorded web pages as the tools of a run see them: a fixed part of the web, which nothing is fetched for.

A batch pins the text of each page, so that all of its rollouts read the same one whatever the site says meanwhile.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from offing.core.scoring import tokenize_answer
from offing.storage import web_pages
from offing.storage.pool import Database
from offing.storage.web_pages import UnindexedTextRow
from offing.tools.tool import TextWindow
from offing.web.provider import SearchHit
from offing.web.search import MergedHit, SearchResults
from offing.web.url import InvalidUrl, parse_url

ENGINE = "recorded"
"""Name under which hits among recorded pages are shown."""

SNIPPET_CHARS = 200

MAX_WORD_CHARS = 100
"""Maximum code points of a word, because an index limits the length of its entries."""

MAX_INDEXED_TEXTS = 16
"""Maximum number of texts whose words are stored in one transaction."""


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
        """Return at most `limit` recorded pages that contain words of the query, those with the most words first.

        Words of the title count, too. The words of a text are stored at the first search that may find it.
        """
        words = split_words(query)
        await self._index_words()
        async with self.database.transaction(self.tenant_id) as connection:
            pages = await web_pages.search_recorded_pages(
                connection, self.tenant_id, self.texts, words, limit, SNIPPET_CHARS
            )
        hits = tuple(MergedHit(SearchHit(one.url, one.title, one.text), (ENGINE,)) for one in pages)
        return SearchResults(hits, {})

    async def _index_words(self) -> None:
        """Store the words of the texts that no search has needed before, a few texts per transaction."""
        while True:
            async with self.database.transaction(self.tenant_id) as connection:
                texts = await web_pages.list_unindexed_texts(connection, self.tenant_id, self.texts, MAX_INDEXED_TEXTS)
            if texts:
                words = await asyncio.to_thread(_split_texts, texts)
                async with self.database.transaction(self.tenant_id) as connection:
                    await web_pages.insert_recorded_words(connection, self.tenant_id, words)
            if len(texts) < MAX_INDEXED_TEXTS:
                return


def _split_texts(texts: Sequence[UnindexedTextRow]) -> dict[UUID, frozenset[str]]:
    return {one.text_id: split_words(f"{one.title} {one.text}") for one in texts}


def split_words(text: str) -> frozenset[str]:
    """Return the different words of a text. Of a very long one, only the beginning counts."""
    return frozenset(word[:MAX_WORD_CHARS] for word in tokenize_answer(text))
