"""The web as the tools of a run see it: pages are fetched, read in a child process and kept as they were.

The only home of how long a page that was fetched is read from the store in place of the web.
"""

from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from offing.clock import new_id
from offing.library.extraction import Refused as Unreadable
from offing.library.readers import Busy, Document
from offing.services import library
from offing.services.reach import Reach
from offing.storage import pages
from offing.storage.pool import Database
from offing.tools.tool import Window
from offing.web.fetch import Fetched
from offing.web.search import Searched, search
from offing.web.url import Refused, target_of

FRESH = timedelta(hours=1)

NAMES = {
    "application/pdf": "page.pdf",
    "application/xhtml+xml": "page.html",
    "text/html": "page.html",
    "text/markdown": "page.md",
}
"""What a page is called for its reader, which tells a type by content first; other types are plain text."""


@dataclass(frozen=True, slots=True)
class Pages:
    """The web as the tools of one tenant see it."""

    database: Database
    tenant: UUID
    reach: Reach

    async def read(self, url: str, start: int, length: int) -> Window | str:
        """A stretch of a page's text, or in a sentence why there is none."""
        target = target_of(url)
        if isinstance(target, Refused):
            return target.problem
        if (known := await self._window(target.url, start, length)) is not None:
            return known
        fetched = await self.reach.web.fetch(target.url)
        if isinstance(fetched, Refused):
            return fetched.problem
        problem = await self._kept(fetched)
        found = await self._window(fetched.url, start, length)
        return problem if found is None else found

    async def search(self, query: str, limit: int) -> Searched:
        if not self.reach.providers:
            return Searched((), {"web": "No search engine is set up here; see docs/configuration.md."})
        return await search(self.reach.engines, self.reach.providers, query, limit)

    async def _window(self, url: str, start: int, length: int) -> Window | None:
        async with self.database.transaction(self.tenant) as connection:
            row = await pages.window(connection, self.tenant, url, start, length, FRESH)
        return row and Window(row.source, row.artefact, row.title, row.name, start, row.text, row.length)

    async def _kept(self, fetched: Fetched) -> str:
        """Why it cannot be read. Empty: it is stored."""
        try:
            document = await self._read(fetched)
        except (Unreadable, Busy) as refusal:
            return str(refusal)
        async with self.database.transaction(self.tenant) as connection:
            artefact = await library.kept(connection, self.tenant, fetched.body, document)
            title = document.title or fetched.url
            await pages.put(connection, self.tenant, id=new_id(), url=fetched.url, title=title, artefact=artefact)
        return ""

    async def _read(self, fetched: Fetched) -> Document:
        return await self.reach.readers.read(NAMES.get(fetched.media_type, "page.txt"), _as_utf8(fetched), self.tenant)


def _as_utf8(fetched: Fetched) -> bytes:
    """The body in the encoding that the server names, said again in one that a reader takes for certain."""
    if not fetched.charset or fetched.media_type == "application/pdf":
        return fetched.body
    try:
        return fetched.body.decode(fetched.charset).encode("utf-8-sig")
    except (LookupError, UnicodeError):
        return fetched.body
