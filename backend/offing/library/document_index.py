"""Build the index of a document: its passages and the weight of every term in each of them.

The weight of a term in a passage is BM25's saturated frequency. It is counted over the text of the passage
and, with an additional weight, over its headings and the title and name of the document. At search time a
query adds up rarity times weight.
"""

from collections import Counter
from dataclasses import dataclass

from offing.library import passages, terms
from offing.library.passages import Passage

INDEX_VERSION = 100 * 2 + terms.TERMS_VERSION
"""Version of passages, terms and weights together. Increase it also when a reader extracts a better text, because files
of the current version are not read again.
"""

NOT_INDEXED = 0
"""Version of a text that no search has to find, so that it has neither passages nor postings."""

TITLE_WEIGHT = 1.5
HEADING_WEIGHT = 0.33
"""Weight of a word of the title or of a heading relative to a word of the text, which often repeats headings."""
BM25_K1 = 1.8
"""BM25's k1: how soon a repeated word stops adding weight."""
BM25_B = 0.75
"""BM25's b: how much the words of a long passage count less. 0 means not at all."""
PAIR_LENGTH = 0.4
"""What a pair of characters counts in the length of a passage. In scripts without spaces, a passage of the target size
has two to three times as many terms.
"""
TYPICAL_PASSAGE_TERMS = 60.0
"""Number of terms of a typical passage. It is a constant because passages have one target size, so weights
never change later.
"""


@dataclass(frozen=True, slots=True)
class Posting:
    """The passages of one document that contain a term."""

    term: str
    passages: tuple[int, ...]
    """Ordinals of passages, from 0, ascending."""
    weights: tuple[float, ...]
    """Saturated frequency in each passage, between 0 and 1."""


@dataclass(frozen=True, slots=True)
class DocumentIndex:
    """The passages and postings of a text."""

    passages: tuple[Passage, ...]
    postings: tuple[Posting, ...]
    version: int = INDEX_VERSION


def build_index(text: str, *, title: str = "", name: str = "") -> DocumentIndex:
    """Build the index of a text. `title` and `name` count for every passage."""
    cuts = passages.split_passages(text)
    name_terms = Counter(set(terms.extract_terms(f"{title}\n{name}")))
    where: dict[str, tuple[list[int], list[float]]] = {}
    for ordinal, passage in enumerate(cuts):
        for term, weight in _term_weights(text, passage, name_terms).items():
            at, weights = where.setdefault(term, ([], []))
            at.append(ordinal)
            weights.append(weight)
    return DocumentIndex(cuts, tuple(Posting(term, tuple(at), tuple(weights)) for term, (at, weights) in where.items()))


def _term_weights(text: str, passage: Passage, title_terms: Counter[str]) -> dict[str, float]:
    counts: dict[str, float] = {}
    length = 0.0
    for term in terms.extract_terms(text[passage.start : passage.end]):
        counts[term] = counts.get(term, 0.0) + 1.0
        length += PAIR_LENGTH if terms.is_unspaced(term) else 1.0
    for term in terms.extract_terms("\n".join(passage.headings)):
        counts[term] = counts.get(term, 0.0) + HEADING_WEIGHT
    for term in title_terms:
        counts[term] = counts.get(term, 0.0) + TITLE_WEIGHT
    damping = BM25_K1 * (1 - BM25_B + BM25_B * length / TYPICAL_PASSAGE_TERMS)
    return {term: round(count / (count + damping), 4) for term, count in counts.items()}
