"""The interface of web search engines: their registration, requests and hits."""

import html
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from offing.registry import Group, Registry

MAX_SNIPPET_CHARS = 600
MAX_TITLE_CHARS = 300

_TAG = re.compile(r"<[^<>]{0,200}>")


@dataclass(frozen=True, slots=True)
class SearchHit:
    """A page that one search engine found."""

    url: str
    title: str
    snippet: str = ""
    """Plain text from the page. The engine may cut it anywhere, so it is not a quote."""
    published: str = ""
    """Publication date as the engine reports it. Empty if it does not."""


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """A request to a search engine."""

    url: str
    params: Mapping[str, str | int] = field(default_factory=dict[str, str | int])
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """Headers with the API key, if one is needed. They are excluded from the repr."""
    json: Mapping[str, Any] | None = None
    """Body of a POST request. `None` means that the request is a GET."""


class SearchProvider(Protocol):
    """A web search engine."""

    @property
    def name(self) -> str: ...

    def build_request(self, query: str, limit: int) -> SearchRequest: ...

    def parse_response(self, body: bytes) -> Sequence[SearchHit]:
        """Return the hits, best first. Raises ValueError, KeyError or TypeError for an invalid response."""
        ...


@dataclass(frozen=True, slots=True)
class SearchEngine:
    """A registered search engine: the variable that it needs, and the function that creates it."""

    variable: str
    """Environment variable that it needs, such as an API key. Empty if it needs none."""
    create: Callable[[str], SearchProvider]
    """Returns the provider for the value of the variable."""


SEARCH_ENGINES: Registry[SearchEngine] = Registry(
    Group.SEARCH_ENGINES,
    "a search engine",
    accepts=lambda value: isinstance(value, SearchEngine),
    remedy="Name an offing.web.provider.SearchEngine.",
)
"""The search engines by name."""


def strip_markup(text: object, max_chars: int) -> str:
    """Return one line of text without markup. Empty for a value that is not text."""
    if not isinstance(text, str):
        return ""
    bare = " ".join(html.unescape(_TAG.sub("", text)).split())
    return bare if len(bare) <= max_chars else bare[: max_chars - 1].rstrip() + "…"


def build_hit(url: object, title: object, snippet: object = "", published: object = "") -> SearchHit:
    """Build a hit from an engine's fields. Raises TypeError for an address that is not text."""
    if not isinstance(url, str):
        raise TypeError("url")
    return SearchHit(
        url, strip_markup(title, MAX_TITLE_CHARS), strip_markup(snippet, MAX_SNIPPET_CHARS), strip_markup(published, 40)
    )
