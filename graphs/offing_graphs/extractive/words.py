"""Which words of a question and of a sentence count as the same: folding, stemming, identifiers and their parts.

The only home of the model-free roles' word lists. Knows neither questions nor passages.
"""

import re
import threading
import unicodedata
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import snowballstemmer

STOP_WORDS = frozenset(
    """a about after all also am an and any are as at be because been before being between both but by can cannot
    could did do does done during each either etc for from get gets had has have having he her here him his
    how however i if in into is it its itself just let lets like many may me might more most much must my
    neither no nor not of off on one only or other our out over own per please same shall she should since
    so some such than that the their them then there these they this those though through thus to too under
    until up upon us very via versus vs was we were what when where whether which while who whom whose why
    will with within without would yes yet you your don doesn didn isn aren wasn weren won couldn shouldn
    wouldn ll ve re s t d m""".split()  # noqa: SIM905
)
"""Words that say nothing about a subject."""

WEAK_WORDS = frozenset(
    """able actual actually add added allow best better call cause come common correct deal describe detail
    difference different do easy effect example exactly exist explain find first give go good happen help
    important instead kind know list look main make mean means method mention need offer people possible
    proper provide purpose question reason recommend recommended relate require right say see set show
    something sort support tell thing think third together try type use used user using usual want way well
    work works wrong write advantage disadvantage compare comparison consider handle""".split()  # noqa: SIM905
)
"""Words that say little: they count, but not for much."""

ENDINGS = ("ment", "ur", "er", "or", "al", "abl", "ation", "at", "ion", "iv", "anc", "enc", "ant", "ent", "ist", "ness")
"""What English stems of one family differ by."""

_TOKEN = re.compile(r"[^\W_]+(?:(?:[_.\-:'\u2019]|__)[^\W_]+)*")
_PART = re.compile(r"[^\W_]+")
_HUMP = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
_NUMBER = re.compile(r"\d+(?:[.:]\d+)+")
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\u0e00-\u0eff\u1000-\u109f]+")

_stemmer: Any = snowballstemmer.stemmer("english")  # pyright: ignore[reportUnknownMemberType]
_stemming = threading.Lock()


KIN = 0.8
"""What a word counts of which another word of its family is found."""
LIKE = 0.55
"""What a word counts of which another is found that may stand for it."""
PART_OF_WORD = 0.6
"""What a word counts that is found as a part of an identifier only."""


@dataclass(frozen=True, slots=True)
class Term:
    """One word of a question in the forms in which a sentence may hold it."""

    shown: str
    """As it was written."""
    whole: str
    parts: tuple[str, ...] = ()
    """Of an identifier or a hyphenated word. Empty: the word has no parts."""
    weak: bool = False
    kin: tuple[str, ...] = ()
    """Stems of other words of its family, such as departure for depart."""
    like: tuple[str, ...] = ()
    """Stems of words that may stand for it, such as maximum for largest."""

    def within(self, held: "Stems") -> float:
        """How far the term is among these stems, 0 to 1."""
        if self.whole in held.words:
            return 1.0
        if not held.words.isdisjoint(self.kin):
            return KIN
        if not self.parts:
            found = PART_OF_WORD if self.whole in held.parts else 0.0
            return max(found, LIKE) if self.like and not held.words.isdisjoint(self.like) else found
        share = sum(part in held.words or part in held.parts for part in self.parts) / len(self.parts)
        return 0.9 if share == 1 else 0.5 * share


@dataclass(frozen=True, slots=True)
class Stems:
    """What a term can be found by in a text."""

    words: frozenset[str] = frozenset()
    parts: frozenset[str] = frozenset()
    """Of identifiers and hyphenated words, where they are no words of the text themselves."""

    def __bool__(self) -> bool:
        return bool(self.words)


def terms(text: str) -> tuple[Term, ...]:
    """The words that matter in a question, each once, in order. Where none matters, all of them."""
    by_stem = {t.whole: t for token in reversed(_tokens(text)) for t in _terms_of(token)}
    found = tuple(reversed(by_stem.values()))
    kept = tuple(t for t in found if t.whole not in _STOP_STEMS and t.shown.lower() not in STOP_WORDS)
    return kept or found


def with_kin(term: Term, vocabulary: frozenset[str]) -> Term:
    """The term with those of its family that occur at all."""
    if len(term.whole) < 3 or not term.whole.isalpha():
        return term
    longer = {term.whole + ending for ending in ENDINGS}
    shorter = {term.whole[: -len(e)] for e in ENDINGS if term.whole.endswith(e) and len(term.whole) - len(e) >= 4}
    return replace(term, kin=tuple(sorted((longer | shorter) & vocabulary)))


@lru_cache(maxsize=8_192)
def stems(text: str) -> Stems:
    """Everything that a term can be found by in this text."""
    found = [forms(token) for token in _tokens(text)]
    words = frozenset(f[0] for f in found)
    return Stems(words, frozenset(part for f in found for part in f[1:]) - words)


def sequence(text: str) -> tuple[str, ...]:
    """The stems in reading order, one a word, stop words left out."""
    return tuple(found for token in _tokens(text) if (found := forms(token)[0]) and token.lower() not in STOP_WORDS)


@lru_cache(maxsize=32_768)
def forms(token: str) -> tuple[str, ...]:
    """A word's stem, then those of its parts."""
    if _NUMBER.fullmatch(token):
        return (token,)
    parts = _parts(token)
    whole = stem("".join(parts))
    return (whole, *map(stem, parts)) if len(parts) > 1 else (whole,)


@lru_cache(maxsize=32_768)
def stem(word: str) -> str:
    """The English stem; other scripts come back folded."""
    folded = unicodedata.normalize("NFKC", word).casefold()
    if not folded.isascii():
        return folded
    with _stemming:  # the stemmer keeps the word it works on in itself
        return str(_stemmer.stemWord(folded))


def _tokens(text: str) -> list[str]:
    """Words as written; stretches of scripts without spaces in overlapping pairs of characters."""
    found: list[str] = []
    for token in _TOKEN.findall(text):
        if token.isascii() or not _UNSPACED.search(token):
            found.append(token)
            continue
        at = 0
        for match in _UNSPACED.finditer(token):
            found += [token[at : match.start()]] if match.start() > at else []
            found += _pairs(match.group())
            at = match.end()
        found += [token[at:]] if at < len(token) else []
    return found


def _pairs(run: str) -> list[str]:
    return [run[i : i + 2] for i in range(len(run) - 1)] or [run]


def _parts(token: str) -> list[str]:
    token = token.replace("'", "").replace("\u2019", "")
    return [h for part in _PART.findall(token) for h in (_HUMP.findall(part) if part.isascii() else [part])] or [token]


def _terms_of(token: str) -> tuple[Term, ...]:
    found = forms(token)
    weak = found[0] in _WEAK_STEMS and len(found) == 1
    return (Term(token, found[0], found[1:], weak),)


_STOP_STEMS = frozenset(map(stem, STOP_WORDS))
_WEAK_STEMS = frozenset(map(stem, WEAK_WORDS))
