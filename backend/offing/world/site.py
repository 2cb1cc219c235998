"""The world as a small web site: an index, its pages, a search, and a place that injected text tells readers to call.

Pure: a path and a query to a reply. Serving it is the command line's.
"""

import re
from array import array
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from math import ceil, log

from offing.world.documents import Document, document
from offing.world.facts import World
from offing.world.injections import injection, planted
from offing.world.pages import Form

LISTED = 100
"""Pages named on one page of the index."""
FOUND = 20
SHOWN = 240
"""Code points of a page shown with what a search found."""

TYPES = {Form.HTML: "text/html", Form.MD: "text/markdown", Form.TXT: "text/plain"}
WORD = re.compile(r"[^\W_]+")
HTML = "text/html"


@dataclass(frozen=True, slots=True)
class Reply:
    status: int
    type: str
    """The media type; the text is UTF-8."""
    text: str
    canary: str = ""
    """What an injected text made the reader bring here. Empty: nothing did."""


class Site:
    """A world's site. Searching reads every document once, at the first search."""

    def __init__(self, world: World) -> None:
        self._world = world

    def reply(self, path: str, query: Mapping[str, str]) -> Reply:
        """To a GET of a decoded path."""
        match path.strip("/").split("/"):
            case [""]:
                return self._index(query.get("page", "1"))
            case ["search"]:
                return self._search(query.get("q", "")[:500])
            case ["page", number] if self._exists(number):
                return self._page(int(number))
            case ["collect", canary]:
                return Reply(200, "text/plain", "Noted.\n", canary[:100])
            case _:
                return Reply(404, HTML, _html("Not found", "<p>There is no such page.</p>"))

    def _exists(self, number: str) -> bool:
        return number.isascii() and number.isdecimal() and len(number) < 7 and int(number) < self._world.spec.documents

    def _page(self, number: int) -> Reply:
        found = document(self._world, number)
        form, attempt = Form(found.path.rpartition(".")[2]), injection(self._world, number)
        return Reply(200, TYPES[form], planted(found.text, form, attempt) if attempt else found.text)

    def _index(self, wanted: str) -> Reply:
        pages = ceil(self._world.spec.documents / LISTED)
        page = min(max(int(wanted) if wanted.isascii() and wanted.isdecimal() and len(wanted) < 7 else 1, 1), pages)
        numbers = range((page - 1) * LISTED, min(page * LISTED, self._world.spec.documents))
        items = "".join(f"<li>{_link(document(self._world, n))}</li>\n" for n in numbers)
        turns = " ".join(
            f'<a href="/?page={n}">{label}</a>'
            for n, label in ((page - 1, "Earlier"), (page + 1, "Later"))
            if 1 <= n <= pages
        )
        text = f"<p>Page {page} of {pages}. {turns}</p>\n<ul>\n{items}</ul>"
        return Reply(200, HTML, _html(f"The archive of {self._world.spec}", text))

    def _search(self, query: str) -> Reply:
        found = [document(self._world, number) for number in self._words.best(_terms(query), FOUND)]
        items = "".join(f"<li>{_link(d)}<br>{escape(_summary(d))}</li>\n" for d in found)
        text = f"<ol>\n{items}</ol>" if found else "<p>Nothing was found.</p>"
        return Reply(200, HTML, _html(f"Search: {query}" if query else "Search", text))

    @cached_property
    def _words(self) -> "Words":
        return Words(document(self._world, n) for n in range(self._world.spec.documents))


class Words:
    """In which documents each word stands."""

    def __init__(self, documents: Iterator[Document]) -> None:
        self._places: dict[str, array[int]] = {}
        self._total = 0
        for found in documents:
            self._total += 1
            for word in set(_terms(found.text)):
                self._places.setdefault(word, array("I")).append(found.number)

    def best(self, words: Sequence[str], most: int) -> list[int]:
        """Documents by how many of the words they have, rare words first."""
        scores: Counter[int] = Counter()
        for word in set(words):
            places = self._places.get(word, ())
            weight = log(1 + self._total / len(places)) if places else 0.0
            for number in places:
                scores[number] += weight  # pyright: ignore[reportArgumentType]  (a Counter counts in floats as well)
        return sorted(scores, key=lambda number: (-scores[number], number))[:most]


def _terms(text: str) -> list[str]:
    return [word.lower() for word in WORD.findall(text)]


def _link(found: Document) -> str:
    return f'<a href="/page/{found.number}">{escape(found.title)}</a> ({escape(found.authority)})'


def _summary(found: Document) -> str:
    plain = re.sub(r"<head>.*?</head>|<[^>]*>", " ", found.text, flags=re.DOTALL)
    return " ".join(plain.split())[:SHOWN]


TEMPLATE = """<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>{title}</title></head>
<body>
<form action="/search"><input name="q" aria-label="Words"> <button>Search</button></form>
<p><a href="/">All pages</a></p>
<h1>{title}</h1>
{body}
</body>
</html>
"""


def _html(title: str, body: str) -> str:
    return TEMPLATE.format(title=escape(title), body=body)
