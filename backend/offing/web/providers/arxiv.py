"""arXiv: papers, without a key. An entry's address is its abstract page; its PDF lies under /pdf/ with the same id."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from offing.web.provider import Asked, Hit, hit

_ATOM = "{http://www.w3.org/2005/Atom}"
_WORD = re.compile(r"\w[\w-]*")


@dataclass(frozen=True, slots=True)
class ArXiv:
    base: str = "https://export.arxiv.org"
    name: str = "arxiv"

    def ask(self, query: str, limit: int) -> Asked:
        """Its words in any field; what the engine takes for syntax is left out."""
        words = " OR ".join(f"all:{word}" for word in _WORD.findall(query)[:20])
        return Asked(f"{self.base}/api/query", {"search_query": words, "max_results": min(limit, 20)})

    def read(self, body: bytes) -> Sequence[Hit]:
        return list(_entries(body))


def _entries(body: bytes) -> Iterator[Hit]:
    """Entities are not resolved and nothing is loaded from elsewhere."""
    etree: Any = import_module("lxml.etree")
    try:
        feed = etree.fromstring(body, etree.XMLParser(resolve_entities=False, no_network=True))
    except etree.XMLSyntaxError as error:
        raise ValueError(str(error)) from None
    if feed.tag != f"{_ATOM}feed":
        raise ValueError("no Atom feed")
    for entry in feed.iter(f"{_ATOM}entry"):
        said = {name: entry.findtext(f"{_ATOM}{name}") for name in ("id", "title", "summary", "published")}
        address = (said["id"] or "").replace("http://", "https://", 1)
        yield hit(address, said["title"], said["summary"], (said["published"] or "")[:10])
