"""The interface of web search engines: their registration, requests and hits."""

import html
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, cast, runtime_checkable
from urllib.parse import quote

from offing.registry import Group, Registry

MAX_SNIPPET_CHARS = 600
MAX_TITLE_CHARS = 300
MAX_QUERY_WORDS = 20
MIN_TITLE_WORDS = 3
"""Minimum number of words of a title that identifies a publication. Many publications share a shorter one."""

_TAG = re.compile(r"<[^<>]{0,200}>")
_QUERY_WORD = re.compile(r"\w[\w-]*")
_POSSESSIVE = re.compile(r"['\u2019]s\b")
_TITLE_WORD = re.compile(r"\w+")
_DOI = re.compile(r"10\.\d{4,9}/\S+")


@dataclass(frozen=True, slots=True)
class SearchHit:
    """A page that one search engine found."""

    url: str
    title: str
    snippet: str = ""
    """Plain text from the page. The engine may cut it anywhere, so it is not a quote."""
    published: str = ""
    """Publication date as the engine reports it. Empty if it does not."""
    identifiers: tuple[str, ...] = ()
    """Keys of the publication: its DOI and its title. Hits that share one are the same publication. Empty for
    an ordinary web page.
    """


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """A request to a search engine."""

    url: str
    params: Mapping[str, str | int] = field(default_factory=dict[str, str | int], repr=False)
    """Parameters of the URL. They are excluded from the repr, because they may contain an API key."""
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


@runtime_checkable
class PagedSearchProvider(SearchProvider, Protocol):
    """A web search engine whose pages of results hold fewer hits than a search may ask for."""

    def build_next_request(self, query: str, limit: int, page: int, hit_count: int) -> SearchRequest | None:
        """Return the request for a further page. `None` if there is none or if no more hits are needed.

        Pages are numbered from 1, so `page` is at least 2. `hit_count` is the number of hits of the pages before it.
        """
        ...


@dataclass(frozen=True, slots=True)
class SearchEngine:
    """A registered search engine: the variables that it needs, and the function that creates it."""

    variable: str
    """Environment variable that it needs, such as an API key. Empty if it needs none."""
    create: Callable[[str], SearchProvider] | Callable[[str, str], SearchProvider]
    """Returns the provider for the values of `variable` and `more_variables`, one argument per variable."""
    more_variables: tuple[str, ...] = ()
    """Further environment variables that it needs."""
    is_optional: bool = False
    """Whether it also works without its variables, whose values are then empty."""
    covers: str = ""
    """What it finds, for people who choose an engine. Empty if it is not described."""
    cost: str = ""
    """What a search costs, in words. Empty if it is not described."""

    @property
    def variables(self) -> tuple[str, ...]:
        """All its environment variables. Empty if it has none."""
        return (self.variable, *self.more_variables) if self.variable else ()

    @property
    def works_without_key(self) -> bool:
        """Whether it works although none of its variables is set."""
        return self.is_optional or not self.variable


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


def build_publication(
    url: object, title: object, snippet: object = "", published: object = "", *, doi: object = None
) -> SearchHit:
    """Build a hit for a publication. `doi` is its DOI or the URL of its DOI, or `None` if it has none.

    Raises TypeError for an address that is not text.
    """
    hit = build_hit(url, title, snippet, published)
    keys = (name_doi(parse_doi(doi)), _name_title(hit.title))
    return replace(hit, identifiers=tuple(key for key in keys if key))


def parse_doi(text: object) -> str:
    """Return the DOI in a text or URL, in lower case. Empty if there is none."""
    match = _DOI.search(text) if isinstance(text, str) else None
    return match[0].lower() if match else ""


def name_doi(doi: str) -> str:
    """Return the identifier of a publication with a DOI. Empty for an empty DOI."""
    return f"doi:{doi}" if doi else ""


def build_doi_url(doi: str) -> str:
    """Return the URL that a DOI resolves to."""
    return f"https://doi.org/{quote(doi, safe='/:;()')}"


def list_words(query: str) -> Sequence[str]:
    """Return the words of a query in lower case, without operators and other syntax. At most 20 are returned."""
    return [word.lower() for word in _QUERY_WORD.findall(_POSSESSIVE.sub("", query))[:MAX_QUERY_WORDS]]


def read_optional_object(value: object) -> Mapping[str, Any]:
    """Return an object of a JSON answer, empty for null. Raises TypeError for another value."""
    if value is not None and not isinstance(value, dict):
        raise TypeError("object")
    return cast("Mapping[str, Any]", value or {})


def _name_title(title: str) -> str:
    """Return the identifier of a publication with a title, regardless of case and punctuation.

    Empty for a title that is too short to identify a publication.
    """
    words = _TITLE_WORD.findall(unicodedata.normalize("NFKC", title).casefold())
    return f"title:{' '.join(words)}" if len(words) >= MIN_TITLE_WORDS else ""
