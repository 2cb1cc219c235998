"""A document made ready for the index: its passages and, for every term, how much it weighs in each of them.

The only home of the ranking's weights. A passage's weight for a term is BM25's saturated frequency, counted over its
text and, with more weight, over its headings and the document's title and name, so that what a query adds up at search
time is rarity times weight. Knows no storage.
"""

from collections import Counter
from dataclasses import dataclass

from offing.library import passages, terms
from offing.library.passages import Passage

VERSION = 100 * 1 + terms.VERSION
"""Of passages, terms and weights together."""

TITLE_WEIGHT = 1.0
HEADING_WEIGHT = 0.5
"""How often a word of the title, or of a heading, counts next to one in the text, where headings often stand too."""
SATURATION = 1.6
"""BM25's k1: how soon a repeated word stops adding weight."""
LENGTH_SHARE = 0.5
"""BM25's b: how much a long passage's words count for less. 0: not at all."""
USUAL_LENGTH = 85.0
"""Terms of an ordinary passage. A constant, for passages are cut to one size: weights never change afterwards."""


@dataclass(frozen=True, slots=True)
class Posting:
    """Where one term stands in one document."""

    term: str
    passages: tuple[int, ...]
    """Ordinals of passages, from 0, ascending."""
    weights: tuple[float, ...]
    """Saturated frequency in each, between 0 and 1."""


@dataclass(frozen=True, slots=True)
class Digest:
    """What the index keeps of a text."""

    passages: tuple[Passage, ...]
    postings: tuple[Posting, ...]
    version: int = VERSION


def digest(text: str, *, title: str = "", name: str = "") -> Digest:
    """Passages and postings of a text. `title` and `name` count for every passage of it."""
    cuts = passages.cut(text)
    known_as = Counter(set(terms.terms(f"{title}\n{name}")))
    where: dict[str, tuple[list[int], list[float]]] = {}
    for ordinal, passage in enumerate(cuts):
        for term, weight in _weights(text, passage, known_as).items():
            at, weights = where.setdefault(term, ([], []))
            at.append(ordinal)
            weights.append(weight)
    return Digest(cuts, tuple(Posting(term, tuple(at), tuple(weights)) for term, (at, weights) in where.items()))


def _weights(text: str, passage: Passage, known_as: Counter[str]) -> dict[str, float]:
    counts: dict[str, float] = {}
    length = 0
    for term in terms.terms(text[passage.start : passage.end]):
        counts[term] = counts.get(term, 0.0) + 1.0
        length += 1
    for term in terms.terms("\n".join(passage.headings)):
        counts[term] = counts.get(term, 0.0) + HEADING_WEIGHT
    for term in known_as:
        counts[term] = counts.get(term, 0.0) + TITLE_WEIGHT
    damping = SATURATION * (1 - LENGTH_SHARE + LENGTH_SHARE * length / USUAL_LENGTH)
    return {term: round(count / (count + damping), 4) for term, count in counts.items()}
