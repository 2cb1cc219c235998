"""Find who published a web page and when: in its meta elements, its structured data or its time elements.

Dates of changes, and the dates of comments and of other pages that a page lists, are not read.
"""

import html
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, cast

import orjson

from offing.library.publication import MAX_AUTHORS, Publication, build_publication, join_authors

MAX_META_ELEMENTS = 1_000
"""Maximum number of meta elements of a page that are read."""
MAX_JSON_CHARS = 500_000
"""Maximum code points of a block of structured data. A longer one is not read."""
MAX_JSON_BLOCKS = 20
MAX_JSON_VALUES = 2_000
"""Maximum number of objects and lists of a block of structured data that are read."""

_PAPER_DATES = ("citation_publication_date", "citation_date", "citation_year", "prism.publicationdate")
_PAPER_AUTHORS = ("citation_author", "citation_authors")
_PAGE_DATES = ("article:published_time", "og:article:published_time", "og:published_time", "article:published")
_OTHER_DATES = (
    *("dcterms.issued", "dc.date.issued", "dcterms.available", "dcterms.date", "dc.date", "dcterms.created"),
    *("dc.date.created", "datepublished", "publish-date", "publish_date", "publication_date", "pubdate", "pub_date"),
    *("parsely-pub-date", "sailthru.date", "citation_online_date", "date"),
)
"""Properties of a page that state its date, the most reliable first."""
_AUTHORS = ("author", "article:author", "dc.creator", "dcterms.creator", "parsely-author", "sailthru.author", "byl")
_ARTICLE_ENDINGS = ("article", "posting", "report", "thesis")
_WORK_ENDINGS = ("page", "book", "dataset", "chapter", "howto", "creativework", "legislation")


def find_publication(tree: Any) -> Publication:
    """Return what a page states about its authors and its date."""
    stated = _read_statements(tree)
    works = list(_list_works(tree))
    dates = [
        *_select(stated, _PAPER_DATES + _PAGE_DATES),
        *(text for work, _ in works for text in _list_texts(work.get("datePublished"))),
        *_select(stated, _OTHER_DATES),
        *_list_marked_dates(tree),
    ]
    authors = (
        *(stated.get(name, ()) for name in _PAPER_AUTHORS),
        *(_list_names(work, by_id) for work, by_id in works),
        *(stated.get(name, ()) for name in _AUTHORS),
    )
    return build_publication(next(filter(join_authors, authors), ()), dates)


def _read_statements(tree: Any) -> dict[str, list[str]]:
    """Return the values of each property of the page that are not empty."""
    values = dict[str, list[str]]()
    for meta in islice(tree.iter("meta"), MAX_META_ELEMENTS):
        if value := (meta.get("content") or "").strip():
            names = " ".join(meta.get(key) or "" for key in ("property", "name", "itemprop"))[:200].lower().split()
            for name in dict.fromkeys(names):
                values.setdefault(name, []).append(value)
    return values


def _select(stated: Mapping[str, Sequence[str]], names: Sequence[str]) -> list[str]:
    return [value for name in names for value in stated.get(name, ())]


def _list_marked_dates(tree: Any) -> Iterator[str]:
    """Yield the dates of elements that are marked as the date of publication."""
    for element in tree.iter("time", "span", "p", "div", "abbr"):
        if element.get("itemprop") == "datePublished" or (element.tag == "time" and element.get("pubdate") is not None):
            yield element.get("datetime") or element.get("content") or element.get("title") or element.text or ""
            return


def _list_works(tree: Any) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """Yield the works that the structured data of a page describes, articles first, with all objects by id."""
    blocks = (script for script in tree.iter("script") if "ld+json" in (script.get("type") or "").lower())
    parsed = [_parse_objects(script.text or "") for script in islice(blocks, MAX_JSON_BLOCKS)]
    for endings in (_ARTICLE_ENDINGS, _WORK_ENDINGS):
        for objects in parsed:
            by_id = {id: one for one in objects if isinstance(id := one.get("@id"), str)}
            for one in objects:
                if any(name.lower().endswith(endings) for name in _list_texts(one.get("@type"))):
                    yield one, by_id


def _parse_objects(source: str) -> list[Mapping[str, Any]]:
    """Return the objects of a block on its first level, in its graph and as its main entity. Empty if it is invalid."""
    if len(source) > MAX_JSON_CHARS:
        return []
    try:
        waiting: list[Any] = [orjson.loads(source)]
    except orjson.JSONDecodeError:
        return []
    objects = list[Mapping[str, Any]]()
    for value in islice(waiting, MAX_JSON_VALUES):  # also those that are appended meanwhile
        if isinstance(value, list):
            waiting += cast("list[Any]", value)[:MAX_JSON_VALUES]
        elif isinstance(value, dict):
            one = cast("Mapping[str, Any]", value)
            objects.append(one)
            waiting += [one[key] for key in ("@graph", "mainEntity") if key in one]
    return objects


def _list_names(work: Mapping[str, Any], by_id: Mapping[str, Any]) -> list[str]:
    """Return the names of the authors of a work. An author can be a text, an object or the id of an object."""
    stated: Any = work.get("author") or work.get("creator") or []
    authors = cast("list[Any]", stated) if isinstance(stated, list) else [stated]
    names = (_name_author(author, by_id) for author in authors[:MAX_AUTHORS])
    return [html.unescape(name) for texts in names for name in _list_texts(texts)]


def _name_author(author: Any, by_id: Mapping[str, Any]) -> Any:
    if not isinstance(author, dict):
        return author
    one = cast("Mapping[str, Any]", author)
    id = one.get("@id")
    return one.get("name") or (by_id.get(id, {}).get("name") if isinstance(id, str) else None)


def _list_texts(value: Any) -> list[str]:
    """Return a text or the texts of a list. Empty for any other value."""
    values = cast("list[Any]", value) if isinstance(value, list) else [value]
    return [one for one in values[:MAX_AUTHORS] if isinstance(one, str)]
