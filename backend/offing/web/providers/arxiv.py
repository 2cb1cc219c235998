"""arXiv: papers, without an API key.

The URL of an entry is its abstract page; its PDF is under /pdf/ with the same id.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from offing.web.provider import SearchEngine, SearchHit, SearchRequest, build_publication

_ATOM = "{http://www.w3.org/2005/Atom}"
_WORD = re.compile(r"\w[\w-]*")
_ID = re.compile(r"/abs/(.+?)(?:v\d+)?$")


@dataclass(frozen=True, slots=True)
class ArxivProvider:
    base: str = "https://export.arxiv.org"
    name: str = "arxiv"

    def build_request(self, query: str, limit: int) -> SearchRequest:
        """Build a request for the words of the query in any field, without the engine's query syntax."""
        words = " OR ".join(f"all:{word}" for word in _WORD.findall(query)[:20])
        return SearchRequest(f"{self.base}/api/query", {"search_query": words, "max_results": min(limit, 20)})

    def parse_response(self, body: bytes) -> Sequence[SearchHit]:
        return list(_parse_entries(body))


ENGINE = SearchEngine(
    "",
    lambda _: ArxivProvider(),
    covers="preprints in physics, mathematics, computer science and related fields",
    cost="free",
)


def _parse_entries(body: bytes) -> Iterator[SearchHit]:
    """Yield the entries of an Atom feed. XML entities are not resolved and nothing external is loaded."""
    etree: Any = import_module("lxml.etree")
    try:
        feed = etree.fromstring(body, etree.XMLParser(resolve_entities=False, no_network=True))
    except etree.XMLSyntaxError as error:
        raise ValueError(str(error)) from None
    if feed.tag != f"{_ATOM}feed":
        raise ValueError("no Atom feed")
    for entry in feed.iter(f"{_ATOM}entry"):
        texts = {name: entry.findtext(f"{_ATOM}{name}") for name in ("id", "title", "summary", "published")}
        address = (texts["id"] or "").replace("http://", "https://", 1)
        date, doi = (texts["published"] or "")[:10], _find_doi(address)
        yield build_publication(address, texts["title"], texts["summary"], date, doi=doi)


def _find_doi(address: str) -> str:
    """Return the DOI that arXiv registers for all versions of a paper. Empty for another address."""
    match = _ID.search(address)
    return f"10.48550/arXiv.{match[1]}" if match else ""
