"""Tokenize, fold and stem the words of documents and queries into terms.

An identifier is found as a whole and by its parts: `maxRequestsPerClient`, `max_requests_per_client` and
`max-requests-per-client` have one whole term in common, and each has the terms max, request and client.
Scripts without spaces are split into pairs of characters.
"""

import re
import unicodedata
from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import chain
from typing import Any

TERMS_VERSION = 2
"""Increase it when the same text would give other terms. Texts that an older version has analyzed are analyzed again.
"""

MAX_TERM_CHARS = 64
"""Maximum code points of a term. Longer ones (encoded data, long addresses) are left out."""

MAX_CACHED_CHARS = 200
"""Maximum code points of a word whose terms are cached, so that the memory of the cache is limited."""

_STOP_WORDS = """
    a about after again all also am an and any are as at be because been before being between both but by can cannot
    cant could did didnt do does doesnt doing dont during each else etc for from get gets had has have having he her
    here hers him his how i if in into is isnt it its itself just let lets like may me might more most much must my no
    nor not of off on once one only or other our out over own per same shall she should so some such than that the their
    them then there these they this those through thus to too under until up upon us very via was we were what when
    where whether which while who whom whose why will with within without would you your yours
"""
STOP_WORDS = frozenset(_STOP_WORDS.split())
"""Words that carry no information about the subject of a text, in folded form. They are not indexed."""

_COMPOUND = re.compile(r"[^\W_]+(?:[_.\-][^\W_]+|__?[^\W_]+)*")
_ASCII_COMPOUND = re.compile(r"[A-Za-z0-9]+(?:[_.\-][A-Za-z0-9]+|__?[A-Za-z0-9]+)*")
"""The same for ASCII text, which it splits in three quarters of the time."""
_WORD_PART = re.compile(r"[^\W_]+")
_CAMEL_PART = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
_APOSTROPHE = re.compile(r"['\u2019](?<=\w['\u2019])(?=\w)")
"""An apostrophe inside a word. It starts with the apostrophe, so that the search skips everything else."""
_UNSPACED_SCRIPT = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\u0e00-\u0eff\u1000-\u109f]+")
_COMBINING_MARK = re.compile(r"[\u0300-\u036f]")


def extract_terms(text: str) -> Iterator[str]:
    """Return the terms of a text in reading order with repetitions and without stop words."""
    words = (_ASCII_COMPOUND if text.isascii() else _COMPOUND).findall(_APOSTROPHE.sub("", text))
    if max(map(len, words), default=0) > MAX_CACHED_CHARS:
        return chain.from_iterable(_cached_terms(w) if len(w) <= MAX_CACHED_CHARS else _terms_of_word(w) for w in words)
    return chain.from_iterable(map(_cached_terms, words))


def is_unspaced(term: str) -> bool:
    """Return whether a term is a pair of characters of a script without spaces, or a single one."""
    return not term.isascii() and _UNSPACED_SCRIPT.match(term) is not None


@lru_cache(maxsize=65_536)
def _cached_terms(joined: str) -> tuple[str, ...]:
    return _terms_of_word(joined)


def _terms_of_word(joined: str) -> tuple[str, ...]:
    """Return the terms of a word: the whole, its parts, and theirs.

    `pool.maxSize` gives poolmaxsize, pool, maxsize, max and size.
    """
    if joined.isascii() and joined.isalpha() and (joined.islower() or joined.istitle() or joined.isupper()):
        return _terms_of_plain_word(joined.lower())
    parts = _WORD_PART.findall(joined)
    forms = _word_forms("".join(parts)) if len(parts) > 1 else []
    for part in parts:
        humps = _CAMEL_PART.findall(part) if part.isascii() else []
        forms += _word_forms(part) + (_terms_of_words(humps) if len(humps) > 1 else [])
    return tuple(forms)


def _terms_of_plain_word(folded: str) -> tuple[str, ...]:
    """Return what `_word_forms` returns for a word of Latin letters, as nearly all words of a text are."""
    if folded in STOP_WORDS or not 1 < len(folded) <= MAX_TERM_CHARS:
        return ()
    return (_load_english_stemmer()(folded),)


def _terms_of_words(words: list[str]) -> list[str]:
    return [form for word in words for form in _word_forms(word)]


def _word_forms(word: str) -> list[str]:
    folded = fold_word(word)
    if not folded.isascii() and _UNSPACED_SCRIPT.search(folded):
        return _character_pairs(folded)
    if (
        folded in STOP_WORDS
        or len(folded) > MAX_TERM_CHARS
        or (len(folded) == 1 and not folded.isdigit() and word.isascii())
    ):
        return []
    return [_stem(folded)]


def fold_word(word: str) -> str:
    """Return the word without differences of case, width and accents: Café and cafe fold to the same word."""
    if word.isascii():
        return word.lower()
    decomposed = unicodedata.normalize("NFKD", word.casefold())
    return unicodedata.normalize("NFC", _COMBINING_MARK.sub("", decomposed))


def _character_pairs(word: str) -> list[str]:
    return [word] if len(word) == 1 else [word[at : at + 2] for at in range(len(word) - 1)]


def _stem(word: str) -> str:
    return _load_english_stemmer()(word) if word.isascii() and word.isalpha() else word


@lru_cache(maxsize=1)
def _load_english_stemmer() -> Callable[[str], str]:
    import snowballstemmer

    stemmer: Any = snowballstemmer.stemmer("english")  # pyright: ignore
    stemmer.maxCacheSize = 0  # PyStemmer's own cache takes several times as long as stemming
    return stemmer.stemWord
