"""A library in memory, for tests: documents cut into passages as the platform cuts them, ranked by words they share.

It stands for the stored library behind its port; nothing else of the platform is needed to search it.
"""

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID, uuid5

from offing.core.tool import Span
from offing.library.passages import cut, first_heading, plain
from offing.library.terms import terms
from offing.tools.tool import FoundPassage, Window

NAMES = UUID("00000000-0000-7000-8000-000000000000")


@dataclass(frozen=True, slots=True)
class Document:
    id: UUID
    name: str
    title: str
    text: str


@dataclass(frozen=True, slots=True)
class _Cut:
    document: Document
    start: int
    end: int
    heading: str
    counts: Counter[str]


class Documents:
    """`LibraryPort` over texts by their names."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._documents = [
            Document(uuid5(NAMES, name), name, plain(first_heading(text)) or name, text) for name, text in texts.items()
        ]
        self._cuts = [cut for document in self._documents for cut in _cuts(document)]
        self._held = Counter(term for one in self._cuts for term in one.counts)
        self._mean = sum(one.counts.total() for one in self._cuts) / max(len(self._cuts), 1)

    async def search(self, query: str, limit: int) -> tuple[FoundPassage, ...]:
        asked = set(terms(query))
        scored = [(self._score(asked, one.counts), nth) for nth, one in enumerate(self._cuts)]
        best = sorted((s for s in scored if s[0] > 0), key=lambda s: (-s[0], s[1]))[:limit]
        return tuple(_found(self._cuts[nth], score) for score, nth in best)

    async def read(self, wanted: str, start: int, length: int) -> Window | None:
        document = next((d for d in self._documents if wanted in (str(d.id), d.name, d.title)), None)
        if document is None:
            return None
        text = document.text[start : start + length]
        return Window(document.id, document.id, document.title, document.name, start, text, len(document.text))

    async def suggest(self, wanted: str, limit: int) -> tuple[str, ...]:
        return tuple(document.name for document in self._documents[:limit])

    def text_of(self, span: Span) -> str:
        """The stored text of a span. Empty: there is none."""
        document = next((d for d in self._documents if d.id == span.artefact), None)
        return document.text[span.start : span.end] if document else ""

    def _score(self, asked: set[str], counts: Counter[str]) -> float:
        length = 0.4 + 0.6 * counts.total() / self._mean
        shared = (term for term in asked if term in counts)
        return sum(self._weight(t) * counts[t] * 2.2 / (counts[t] + 1.2 * length) for t in shared)

    def _weight(self, term: str) -> float:
        return math.log(1 + (len(self._cuts) - self._held[term] + 0.5) / (self._held[term] + 0.5))


def _cuts(document: Document) -> list[_Cut]:
    known_as, cuts = set(terms(f"{document.title}\n{document.name}")), list[_Cut]()
    for passage in cut(document.text):
        heading = " \u203a ".join(passage.headings)
        words = terms(document.text[passage.start : passage.end] + "\n" + heading)
        cuts.append(_Cut(document, passage.start, passage.end, heading, Counter([*words, *known_as])))
    return cuts


def _found(one: _Cut, score: float) -> FoundPassage:
    d = one.document
    text = d.text[one.start : one.end]
    return FoundPassage(d.id, d.id, d.title, d.name, one.heading, one.start, one.end, text, score)
