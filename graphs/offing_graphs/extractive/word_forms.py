"""Word forms that count as the same word: case folding, stemming, identifiers and their parts.

The module also holds the word lists of the model-free roles.
"""

import re
import threading
import unicodedata
from collections.abc import Sequence
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
"""Words that say nothing about the subject of a text."""

WEAK_WORDS = frozenset(
    """able actual actually add added allow best better call cause come common correct deal describe detail
    difference different do easy effect example exactly exist explain find first give go good happen help
    important instead kind know list look main make mean means method mention need offer people possible
    proper provide purpose question reason recommend recommended relate require right say see set show
    something sort support tell thing think third together try type use used user using usual want way well
    work works wrong write advantage disadvantage compare comparison consider handle""".split()  # noqa: SIM905
)
"""Words that count, but little."""

ENDINGS = ("ment", "ur", "er", "or", "al", "abl", "ation", "at", "ion", "iv", "anc", "enc", "ant", "ent", "ist", "ness")
"""Endings by which English stems of one family differ."""

_TOKEN = re.compile(r"[^\W_]+(?:(?:[_.\-:'\u2019]|__)[^\W_]+)*")
_PART = re.compile(r"[^\W_]+")
_HUMP = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
_NUMBER = re.compile(r"\d+(?:[.:]\d+)+")
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\u0e00-\u0eff\u1000-\u109f]+")

_FUNCTION_WORDS = re.compile(
    "为什么|什么|怎么样|怎么|怎样|如何|为何|何时|何地|何人|何种|多少|多长|多久|多大|哪些|哪个|哪一|哪里|哪儿|哪年|请问|是否|有没有|"
    "没有|可以|以及|或者|还是|因为|所以|但是|如果|由于|关于|对于|之间|之后|之前|时候|他们|她们|它们|我们|你们|这个|那个|这些|那些|"
    "一个|一种|一些|[的了是在和与及或也就而过吗呢吧啊被把从到由于为其之这那哪谁何有让使并则若该此每各]"
)
"""Chinese words that say nothing about the subject of a question, and question words."""

_stemmer: Any = snowballstemmer.stemmer("english")  # pyright: ignore[reportUnknownMemberType]
_stemmer_lock = threading.Lock()


KIN_FACTOR = 0.8
"""Match of a term by another word of its family."""
SYNONYM_FACTOR = 0.55
"""Match of a term by a synonym."""
PART_FACTOR = 0.6
"""Match of a term by a part of an identifier only."""


@dataclass(frozen=True, slots=True)
class Term:
    """A word of a question with the forms in which a sentence may contain it."""

    text: str
    """The word as written."""
    stem: str
    parts: tuple[str, ...] = ()
    """Stems of the parts of an identifier or a hyphenated word.

    Empty means that the word has no parts.
    """
    is_weak: bool = False
    related_stems: tuple[str, ...] = ()
    """Stems of other words of its family, such as departure for depart."""
    synonym_stems: tuple[str, ...] = ()
    """Stems of synonyms, such as maximum for largest."""

    def match(self, candidates: "Stems") -> float:
        """Return how well the stems match the term, from 0 to 1."""
        if self.stem in candidates.words:
            return 1.0
        if not candidates.words.isdisjoint(self.related_stems):
            return KIN_FACTOR
        if not self.parts:
            factor = PART_FACTOR if self.stem in candidates.parts else 0.0
            return (
                max(factor, SYNONYM_FACTOR)
                if self.synonym_stems and not candidates.words.isdisjoint(self.synonym_stems)
                else factor
            )
        share = sum(part in candidates.words or part in candidates.parts for part in self.parts) / len(self.parts)
        return 0.9 if share == 1 else 0.5 * share


@dataclass(frozen=True, slots=True)
class Stems:
    """The stems of a text."""

    words: frozenset[str] = frozenset()
    parts: frozenset[str] = frozenset()
    """Stems of the parts of identifiers and hyphenated words that are not words of the text themselves."""

    def __bool__(self) -> bool:
        return bool(self.words)


def extract_terms(text: str) -> tuple[Term, ...]:
    """Return the telling words of a question, each once and in order.

    If there are none, return all words. Pairs of characters with a Chinese function word are left out.
    """
    all_terms = _list_distinct_terms(_tokenize(_FUNCTION_WORDS.sub(" ", text)))
    telling_terms = tuple(t for t in all_terms if not _is_function_word(t))
    return telling_terms or all_terms or _list_distinct_terms(_tokenize(text))


def is_unspaced(text: str) -> bool:
    """Return whether most of a text is in a script without spaces between words."""
    return 2 * sum(map(len, _UNSPACED.findall(text))) > len(text)


def _list_distinct_terms(tokens: list[str]) -> tuple[Term, ...]:
    by_stem = {t.stem: t for token in reversed(tokens) for t in _terms_from_token(token)}
    return tuple(reversed(by_stem.values()))


def _is_function_word(term: Term) -> bool:
    """Return whether a term is a stop word, or a single character that is left of a Chinese word."""
    single = len(term.text) == 1 and bool(_UNSPACED.match(term.text))
    return single or term.stem in _STOP_STEMS or term.text.lower() in STOP_WORDS


def drop_border_pairs(terms: Sequence[Term], vocabulary: frozenset[str]) -> tuple[Term, ...]:
    """Leave out pairs of characters across the border of two words.

    Such a pair occurs nowhere in the vocabulary, and the pairs before and after it do: of the pairs of
    首都北京, 都北 is left out.
    """
    return tuple(t for n, t in enumerate(terms) if not _is_border_pair(terms, n, vocabulary))


def _is_border_pair(terms: Sequence[Term], index: int, vocabulary: frozenset[str]) -> bool:
    if not 0 < index < len(terms) - 1 or terms[index].stem in vocabulary:
        return False
    before, pair, after = (t.text for t in terms[index - 1 : index + 2])
    if not (len(before) == len(pair) == len(after) == 2 and _UNSPACED.fullmatch(pair)):
        return False
    joined = before[1] == pair[0] and pair[1] == after[0]
    return joined and terms[index - 1].stem in vocabulary and terms[index + 1].stem in vocabulary


def add_related_stems(term: Term, vocabulary: frozenset[str]) -> Term:
    """Return the term with the related stems that occur in the vocabulary."""
    if len(term.stem) < 3 or not term.stem.isalpha():
        return term
    longer = {term.stem + ending for ending in ENDINGS}
    shorter = {term.stem[: -len(e)] for e in ENDINGS if term.stem.endswith(e) and len(term.stem) - len(e) >= 4}
    return replace(term, related_stems=tuple(sorted((longer | shorter) & vocabulary)))


@lru_cache(maxsize=8_192)
def extract_stems(text: str) -> Stems:
    """Return all stems of a text."""
    form_lists = [list_forms(token) for token in _tokenize(text)]
    words = frozenset(f[0] for f in form_lists)
    return Stems(words, frozenset(part for f in form_lists for part in f[1:]) - words)


def list_stems(text: str) -> tuple[str, ...]:
    """Return the stem of each word in reading order, without stop words."""
    return tuple(
        stem for token in _tokenize(text) if (stem := list_forms(token)[0]) and token.lower() not in STOP_WORDS
    )


@lru_cache(maxsize=32_768)
def list_forms(token: str) -> tuple[str, ...]:
    """Return the stem of a word, followed by the stems of its parts."""
    if _NUMBER.fullmatch(token):
        return (token,)
    parts = _split_parts(token)
    whole = compute_stem("".join(parts))
    return (whole, *map(compute_stem, parts)) if len(parts) > 1 else (whole,)


@lru_cache(maxsize=32_768)
def compute_stem(word: str) -> str:
    """Return the English stem of a word. Words of other scripts are only case-folded."""
    folded = unicodedata.normalize("NFKC", word).casefold()
    if not folded.isascii():
        return folded
    with _stemmer_lock:  # the stemmer keeps the current word as its state
        return str(_stemmer.stemWord(folded))


def _tokenize(text: str) -> list[str]:
    """Return the words as written.

    Text of scripts without spaces is split into overlapping pairs of characters.
    """
    tokens: list[str] = []
    for token in _TOKEN.findall(text):
        if token.isascii() or not _UNSPACED.search(token):
            tokens.append(token)
            continue
        at = 0
        for match in _UNSPACED.finditer(token):
            tokens += [token[at : match.start()]] if match.start() > at else []
            tokens += _split_pairs(match.group())
            at = match.end()
        tokens += [token[at:]] if at < len(token) else []
    return tokens


def _split_pairs(text: str) -> list[str]:
    return [text[i : i + 2] for i in range(len(text) - 1)] or [text]


def _split_parts(token: str) -> list[str]:
    token = token.replace("'", "").replace("\u2019", "")
    return [h for part in _PART.findall(token) for h in (_HUMP.findall(part) if part.isascii() else [part])] or [token]


def _terms_from_token(token: str) -> tuple[Term, ...]:
    term_forms = list_forms(token)
    weak = term_forms[0] in _WEAK_STEMS and len(term_forms) == 1
    return (Term(token, term_forms[0], term_forms[1:], weak),)


_STOP_STEMS = frozenset(map(compute_stem, STOP_WORDS))
_WEAK_STEMS = frozenset(map(compute_stem, WEAK_WORDS))
