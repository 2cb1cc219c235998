"""A document library in memory for tests.

Documents are split into passages as on the platform and ranked by shared words. It replaces the
stored library, so that a search needs no other part of the platform.
"""

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID, uuid5

from offing.core.tool import SourceSpan
from offing.library.passages import HEADING_SEPARATOR, find_first_heading, split_passages, strip_markup
from offing.library.terms import extract_terms
from offing.tools.tool import FoundPassage, FoundPassages, TextWindow

UUID_NAMESPACE = UUID("00000000-0000-7000-8000-000000000000")


@dataclass(frozen=True, slots=True)
class Document:
    id: UUID
    name: str
    title: str
    text: str


@dataclass(frozen=True, slots=True)
class _Passage:
    document: Document
    start: int
    end: int
    heading: str
    counts: Counter[str]


class Documents:
    """`LibraryPort` over texts by name."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._documents = [
            Document(uuid5(UUID_NAMESPACE, name), name, strip_markup(find_first_heading(text)) or name, text)
            for name, text in texts.items()
        ]
        self._cuts = [cut for document in self._documents for cut in _split_passages(document)]
        self._document_counts = Counter(term for one in self._cuts for term in one.counts)
        self._mean = sum(one.counts.total() for one in self._cuts) / max(len(self._cuts), 1)

    async def search(self, query: str, limit: int) -> FoundPassages:
        query_terms = set(extract_terms(query))
        scored = [(self._score(query_terms, one.counts), nth) for nth, one in enumerate(self._cuts)]
        best = sorted((s for s in scored if s[0] > 0), key=lambda s: (-s[0], s[1]))[:limit]
        return FoundPassages(tuple(_to_found_passage(self._cuts[nth], score) for score, nth in best))

    async def read(self, reference: str, start: int, length: int) -> TextWindow | None:
        document = next((d for d in self._documents if reference in (str(d.id), d.name, d.title)), None)
        if document is None:
            return None
        text = document.text[start : start + length]
        return TextWindow(document.id, document.id, document.title, document.name, start, text, len(document.text))

    async def suggest(self, reference: str, limit: int) -> tuple[str, ...]:
        return tuple(document.name for document in self._documents[:limit])

    def lookup_text(self, span: SourceSpan) -> str:
        """Return the stored text of a span. Empty means that there is none."""
        document = next((d for d in self._documents if d.id == span.text_id), None)
        return document.text[span.start : span.end] if document else ""

    def _score(self, query_terms: set[str], counts: Counter[str]) -> float:
        length = 0.4 + 0.6 * counts.total() / self._mean
        shared = (term for term in query_terms if term in counts)
        return sum(self._weight(t) * counts[t] * 2.2 / (counts[t] + 1.2 * length) for t in shared)

    def _weight(self, term: str) -> float:
        return math.log(1 + (len(self._cuts) - self._document_counts[term] + 0.5) / (self._document_counts[term] + 0.5))


def _split_passages(document: Document) -> list[_Passage]:
    name_terms, cuts = set(extract_terms(f"{document.title}\n{document.name}")), list[_Passage]()
    for passage in split_passages(document.text):
        heading = HEADING_SEPARATOR.join(passage.headings)
        words = extract_terms(document.text[passage.start : passage.end] + "\n" + heading)
        cuts.append(_Passage(document, passage.start, passage.end, heading, Counter([*words, *name_terms])))
    return cuts


def _to_found_passage(passage: _Passage, score: float) -> FoundPassage:
    d = passage.document
    text = d.text[passage.start : passage.end]
    return FoundPassage(d.id, d.id, d.title, d.name, passage.heading, passage.start, passage.end, text, score)
