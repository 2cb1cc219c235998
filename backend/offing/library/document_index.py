"""Build the index of a document: its passages and the weight of every term in each of them.

The weight of a term in a passage is BM25's saturated frequency. It is counted over the text of the passage
and, with an additional weight, over its headings and the title and name of the document. At search time a
query adds up rarity times weight.
"""

from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, count, repeat
from typing import NamedTuple

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


class Posting(NamedTuple):
    """The passages of one document that contain a term."""

    term: str
    passages: Sequence[int]
    """Ordinals of passages, from 0, ascending."""
    weights: Sequence[float]
    """Saturated frequency in each passage, between 0 and 1."""


class FlatPostings(NamedTuple):
    """The postings of a document in four sequences, because thousands of small objects take most of the time."""

    terms: Sequence[str]
    counts: Sequence[int]
    """Number of passages that contain each term."""
    ordinals: Sequence[int]
    """Ordinals of these passages, from 0, ascending, for one term after the other."""
    weights: Sequence[float]
    """Saturated frequency of the term in each of these passages, between 0 and 1."""


NO_POSTINGS = FlatPostings((), array("I"), array("I"), array("d"))
"""The postings of a text that has no index."""


@dataclass(frozen=True, slots=True)
class DocumentIndex:
    """The passages and postings of a text."""

    passages: tuple[Passage, ...]
    flat_postings: FlatPostings
    version: int = INDEX_VERSION

    @property
    def postings(self) -> Iterator[Posting]:
        """The postings of one term after the other."""
        terms, counts, ordinals, weights = self.flat_postings
        for term, size, end in zip(terms, counts, accumulate(counts), strict=True):
            yield Posting(term, ordinals[end - size : end], weights[end - size : end])


def build_index(text: str, *, title: str = "", name: str = "") -> DocumentIndex:
    """Build the index of a text. `title` and `name` count for every passage."""
    cuts = passages.split_passages(text)
    name_terms = set(terms.extract_terms(f"{title}\n{name}"))
    numbers = defaultdict[str, int](count().__next__)
    term_numbers, weights, sizes = array("I"), array("d"), list[int]()
    for passage in cuts:
        term_weights = _term_weights(text, passage, name_terms)
        term_numbers.extend(map(numbers.__getitem__, term_weights))
        weights.extend(term_weights.values())
        sizes.append(len(term_weights))
    return DocumentIndex(cuts, _sort_by_term(tuple(numbers), term_numbers, sizes, weights))


def _sort_by_term(
    terms_in_order: Sequence[str], numbers: Sequence[int], sizes: Iterable[int], weights: Sequence[float]
) -> FlatPostings:
    """Return the postings of terms that are listed passage by passage, by their numbers.

    `sizes` are the numbers of terms of the passages.
    """
    ordinals = array("I", chain.from_iterable(map(repeat, count(), sizes)))
    order = sorted(range(len(numbers)), key=numbers.__getitem__)
    counts = Counter(numbers)
    return FlatPostings(
        terms_in_order,
        array("I", map(counts.__getitem__, range(len(terms_in_order)))),
        array("I", map(ordinals.__getitem__, order)),
        array("d", map(weights.__getitem__, order)),
    )


def _term_weights(text: str, passage: Passage, name_terms: Iterable[str]) -> dict[str, float]:
    """Return the weights of a passage's terms."""
    text_terms = list(terms.extract_terms(text[passage.start : passage.end]))
    counts = dict[str, float](Counter(text_terms))
    for term in terms.extract_terms("\n".join(passage.headings)):
        counts[term] = counts.get(term, 0.0) + HEADING_WEIGHT
    for term in name_terms:
        counts[term] = counts.get(term, 0.0) + TITLE_WEIGHT
    damping = BM25_K1 * (1 - BM25_B + BM25_B * _passage_length(text_terms) / TYPICAL_PASSAGE_TERMS)
    # A passage has few different counts, so few weights are computed.
    weights = {number: round(number / (number + damping), 4) for number in set(counts.values())}
    return dict(zip(counts, map(weights.__getitem__, counts.values()), strict=True))


def _passage_length(text_terms: Sequence[str]) -> float:
    if all(map(str.isascii, text_terms)):
        return len(text_terms)
    length = 0.0
    for term in text_terms:
        length += PAIR_LENGTH if terms.is_unspaced(term) else 1.0
    return length
