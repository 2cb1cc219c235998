"""The web as the tools of a run see it: pages are fetched, read in a child process and stored unchanged.

A stored page that is recent enough is read instead of being fetched again.
"""

from dataclasses import dataclass, replace
from datetime import timedelta
from uuid import UUID

from offing.clock import new_id
from offing.core.web_domains import ALL_DOMAINS, WebDomains
from offing.library.extraction import DocumentRejectedError as Unreadable
from offing.library.readers import ParsedDocument, ReadersBusyError
from offing.services.document_storage import store_unindexed
from offing.services.tool_backends import ToolBackends
from offing.storage import web_pages
from offing.storage.pool import Database
from offing.tools.tool import TextWindow
from offing.web.fetch import FetchedPage
from offing.web.search import SearchResults, search_web
from offing.web.url import InvalidUrl, parse_url

MAX_PAGE_AGE = timedelta(hours=1)
SPARE_HITS = 3
"""Factor of the hits that are requested from the search engines if some of them may be outside the run's domains."""

FILE_NAMES = {
    "application/pdf": "page.pdf",
    "application/xhtml+xml": "page.html",
    "text/html": "page.html",
    "text/markdown": "page.md",
}
"""File names for the document reader by media type. The reader detects the type by content first; other types
are plain text.
"""


@dataclass(frozen=True, slots=True)
class WebPageReader:
    """The web as the tools of one tenant see it."""

    database: Database
    tenant_id: UUID
    backends: ToolBackends
    domains: WebDomains = ALL_DOMAINS
    """The part of the web that the run may use."""

    async def read(self, url: str, start: int, length: int) -> TextWindow | str:
        """Return a window of a page's text, or a sentence that explains why it is unavailable."""
        target = parse_url(url)
        if isinstance(target, InvalidUrl):
            return target.problem
        if problem := self.domains.find_problem(target):
            return problem
        if (cached := await self._find_window(target.url, start, length)) is not None:
            return cached
        fetched = await self.backends.fetcher.fetch(target.url, self.domains.find_problem)
        if isinstance(fetched, InvalidUrl):
            return fetched.problem
        problem = await self._store_page(fetched)
        window = await self._find_window(fetched.url, start, length)
        return problem if window is None else window

    async def search(self, query: str, limit: int) -> SearchResults:
        """Return at most `limit` pages within the run's domains."""
        if not self.backends.search_providers:
            return SearchResults((), {"web": "No search engine is set up here; see docs/configuration.md."})
        backends = self.backends
        is_limited = self.domains != ALL_DOMAINS
        hit_count = limit * SPARE_HITS if is_limited else limit
        results = await search_web(
            backends.search_client, backends.search_providers, query, hit_count, backends.search_rate_limiter
        )
        if not is_limited:
            return results
        return replace(results, hits=tuple(one for one in results.hits if self.domains.allows(one.hit.url))[:limit])

    async def _find_window(self, url: str, start: int, length: int) -> TextWindow | None:
        async with self.database.transaction(self.tenant_id) as connection:
            row = await web_pages.find_window(connection, self.tenant_id, url, start, length, MAX_PAGE_AGE)
        return row and TextWindow(
            row.source_id, row.text_id, row.title, row.name, start, row.text, row.text_length, row.published
        )

    async def _store_page(self, fetched: FetchedPage) -> str:
        """Store a page. Returns why it cannot be read, or an empty text if it is stored."""
        try:
            document = await self._extract(fetched)
        except (Unreadable, ReadersBusyError) as error:
            return str(error)
        async with self.database.transaction(self.tenant_id) as connection:
            text_id = await store_unindexed(connection, self.tenant_id, fetched.body, document)
            title = document.title or fetched.url
            await web_pages.upsert_page(
                connection, self.tenant_id, source_id=new_id(), url=fetched.url, title=title, text_id=text_id
            )
        return ""

    async def _extract(self, fetched: FetchedPage) -> ParsedDocument:
        return await self.backends.document_readers.read(
            FILE_NAMES.get(fetched.media_type, "page.txt"), _recode_as_utf8(fetched), self.tenant_id
        )


def _recode_as_utf8(fetched: FetchedPage) -> bytes:
    """Return the body in UTF-8 with a byte order mark, decoded with the encoding that the server names."""
    if not fetched.charset or fetched.media_type == "application/pdf":
        return fetched.body
    try:
        return fetched.body.decode(fetched.charset).encode("utf-8-sig")
    except (LookupError, UnicodeError):
        return fetched.body
