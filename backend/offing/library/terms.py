"""What counts as the same word: the only home of tokenizing, folding and stemming, for documents and queries alike.

An identifier is findable whole and by its parts: `maxRequestsPerClient`, `max_requests_per_client` and
`max-requests-per-client` share one whole term, and each also stands under max, request and client. Scripts without
spaces are cut into pairs of characters. Knows neither documents nor ranking.
"""

import re
import unicodedata
from collections.abc import Callable, Iterator
from functools import lru_cache

VERSION = 2
"""Raise it when the same text would give other terms; texts analysed by an older version are analysed again."""

LONGEST = 64
"""Code points of a term; longer ones (encoded data, long addresses) are left out."""

LONGEST_REMEMBERED = 200
"""Code points of a word whose terms are remembered, so that the memory for them is bounded."""

_STOP_WORDS = """
    a about after again all also am an and any are as at be because been before being between both but by can cannot
    cant could did didnt do does doesnt doing dont during each else etc for from get gets had has have having he her
    here hers him his how i if in into is isnt it its itself just let lets like may me might more most much must my no
    nor not of off on once one only or other our out over own per same shall she should so some such than that the their
    them then there these they this those through thus to too under until up upon us very via was we were what when
    where whether which while who whom whose why will with within without would you your yours
"""
STOP_WORDS = frozenset(_STOP_WORDS.split())
"""Words that say nothing about a text's subject, as they read after folding. Not part of any index."""

_JOINED = re.compile(r"[^\W_]+(?:[_.\-][^\W_]+|__?[^\W_]+)*")
_PART = re.compile(r"[^\W_]+")
_HUMP = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
_APOSTROPHE = re.compile(r"(?<=\w)['\u2019](?=\w)")
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\u0e00-\u0eff\u1000-\u109f]+")
_MARK = re.compile(r"[\u0300-\u036f]")


def terms(text: str) -> Iterator[str]:
    """The terms of a text in reading order, repeats included; stop words left out."""
    for joined in _JOINED.findall(_APOSTROPHE.sub("", text)):
        yield from _known_word(joined) if len(joined) <= LONGEST_REMEMBERED else _of_word(joined)


@lru_cache(maxsize=65_536)
def _known_word(joined: str) -> tuple[str, ...]:
    return _of_word(joined)


def _of_word(joined: str) -> tuple[str, ...]:
    """The whole, its parts, and theirs: `pool.maxSize` gives poolmaxsize, pool, maxsize, max and size."""
    parts = _PART.findall(joined)
    found = _forms("".join(parts)) if len(parts) > 1 else []
    for part in parts:
        humps = _HUMP.findall(part) if part.isascii() else []
        found += _forms(part) + (_each(humps) if len(humps) > 1 else [])
    return tuple(found)


def _each(words: list[str]) -> list[str]:
    return [form for word in words for form in _forms(word)]


def _forms(word: str) -> list[str]:
    folded = fold(word)
    if _UNSPACED.search(folded):
        return _pairs(folded)
    if folded in STOP_WORDS or len(folded) > LONGEST or (len(folded) == 1 and not folded.isdigit() and word.isascii()):
        return []
    return [_stem(folded)]


def fold(word: str) -> str:
    """The word without differences of case, width and accents: Café and cafe fold alike."""
    if word.isascii():
        return word.lower()
    decomposed = unicodedata.normalize("NFKD", word.casefold())
    return unicodedata.normalize("NFC", _MARK.sub("", decomposed))


def _pairs(word: str) -> list[str]:
    return [word] if len(word) == 1 else [word[at : at + 2] for at in range(len(word) - 1)]


@lru_cache(maxsize=65_536)
def _stem(word: str) -> str:
    return _english()(word) if word.isascii() and word.isalpha() else word


@lru_cache(maxsize=1)
def _english() -> Callable[[str], str]:
    import snowballstemmer

    return snowballstemmer.stemmer("english").stemWord  # pyright: ignore
