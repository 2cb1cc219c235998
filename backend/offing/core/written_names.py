"""Names as texts write them: words in capitals that follow one another, and titles in Chinese or Japanese marks.

Rather a name is missed than a common word taken for one: single words in capitals are no names, the first word of a
sentence is none and makes none of an abbreviation ("Idle HTTP"), and a sentence in which most words have capitals
(German, or a heading) has none. Pure functions.
"""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from offing.core.written_dates import MONTH_NAMES

_WORD = re.compile(r"[^\W\d_]+(?:['\u2019.-][^\W\d_]+)*\.?")
_PARTICLES = frozenset({"of", "de", "del", "della", "der", "den", "di", "du", "la", "le", "van", "von", "da", "dos"})
_COMMON_WORDS = (
    "Figure Fig Table Section Chapter Equation Eq Appendix Theorem Lemma Part Volume Vol Monday Tuesday Wednesday",
    "Thursday Friday Saturday Sunday I It Its The This That These Those In On At For From By With And But Or If As",
    "When While Where Although However Moreover According An A He She They We Both Each Some Most All No Not",
)
_COMMON = frozenset(" ".join(_COMMON_WORDS).split()) | frozenset(MONTH_NAMES)
_MARKED = re.compile("[\u300a\u300c\u300e]([^\u300b\u300d\u300f]{2,40})[\u300b\u300d\u300f]")
_MAX_CAPITAL_FRACTION = 0.4
_MIN_PREFIX_CHARS = 4


@dataclass(frozen=True, slots=True)
class WrittenName:
    """A name in a text, and those of its words that are certainly part of a name."""

    text: str
    start: int
    end: int
    tokens: tuple[str, ...]


def read_names(text: str) -> tuple[WrittenName, ...]:
    """Return the names of a sentence in order."""
    marked = [WrittenName(m[1].strip(), m.start(1), m.end(1), (m[1].strip(),)) for m in _MARKED.finditer(text)]
    return tuple(sorted((*_read_capitals(text), *marked), key=lambda name: name.start))


def contains_name(name: WrittenName, texts: Iterable[str]) -> bool:
    """Return whether each word of a name stands in one of the texts, in this or another ending."""
    joined = [_normalize(text) for text in texts]
    words = {word for text in joined for word in re.findall(r"[^\W_]+", text)}
    return all(
        any(token in text for text in joined) if _is_han(token) else _contains_word(token, words)
        for token in map(_normalize, name.tokens)
    )


def shares_language(sentence: str, texts: Sequence[str]) -> bool:
    """Return whether names of a sentence can be compared with those of texts.

    They share at least two words in small letters, or both have Chinese or Japanese characters.
    """
    if _is_han(sentence):
        return any(map(_is_han, texts))
    words = [set(re.findall(r"(?<![\w])[^\W\d_A-Z]{2,}(?![\w])", one)) for one in (sentence, " ".join(texts))]
    return len(words[0] & words[1]) >= 2


def _read_capitals(text: str) -> Iterable[WrittenName]:
    words = [w for w in _WORD.finditer(text) if not _is_han(w.group())]
    later = [w for w in words if not _starts_sentence(text, w.start()) and w.group().lower() not in _PARTICLES]
    if not later or sum(_is_capital(w.group()) for w in later) > _MAX_CAPITAL_FRACTION * len(later) + 2:
        return
    for group in _group_capitals(text, words):
        certain = [w for w in group if not _starts_sentence(text, w.start()) and _is_capital(w.group())]
        capitals = [w for w in group if _is_capital(w.group())]
        is_abbreviation = len(capitals) == 2 and certain == capitals[1:] and certain[0].group().isupper()
        if len(capitals) >= 2 and certain and not is_abbreviation:
            start, end = group[0].start(), group[-1].end()
            tokens = tuple(part for w in certain for part in re.findall(r"[^\W\d_]{2,}", w.group()))
            if tokens:
                yield WrittenName(text[start:end].rstrip("."), start, end, tokens)


def _group_capitals(text: str, words: list[re.Match[str]]) -> Iterable[list[re.Match[str]]]:
    """Yield words in capitals that follow one another, with particles such as `of` between them."""
    group: list[re.Match[str]] = []
    for word in words:
        if group and text[group[-1].end() : word.start()] != " ":
            yield _drop_particles(group)
            group = []
        if (_is_capital(word.group()) and word.group() not in _COMMON) or (group and word.group() in _PARTICLES):
            group.append(word)
        elif group:
            yield _drop_particles(group)
            group = []
    if group:
        yield _drop_particles(group)


def _drop_particles(group: list[re.Match[str]]) -> list[re.Match[str]]:
    """Return a group without the particles at its end."""
    last = max(n for n, word in enumerate(group) if _is_capital(word.group()))
    return group[: last + 1]


def _starts_sentence(text: str, start: int) -> bool:
    before = text[:start].rstrip("\u201c\u2018\"'([*_ ")
    return not before or before[-1] in ".!?:;\u2026\u3002\u2014-\u2022|"


def _is_capital(word: str) -> bool:
    return word[0].isupper() and len(word) > 1


def _is_han(text: str) -> bool:
    return any("\u3040" <= char <= "\u9fff" for char in text)


def _normalize(text: str) -> str:
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    return "".join(char for char in decomposed if unicodedata.category(char) != "Mn")


def _contains_word(token: str, words: set[str]) -> bool:
    if token in words:
        return True
    long_enough = len(token) >= _MIN_PREFIX_CHARS
    return long_enough and any(
        word.startswith(token) or (len(word) >= _MIN_PREFIX_CHARS and token.startswith(word)) for word in words
    )
