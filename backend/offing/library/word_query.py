"""Words of a text for an index of words, and the search for them. The terms are those of `offing.library.terms`."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from offing.library.terms import MAX_TERM_CHARS, extract_terms, fold_word, is_unspaced

MAX_INDEXED_BYTES = 500_000
"""Maximum size of the different terms of one text in an index. Later terms of a longer text are not found."""

MAX_QUERY_TERMS = 40

MAX_EXCERPT_CHARS = 200

_WORD = re.compile(r"[^\W_]+")

_LAST_WORD = re.compile(r"[^\W_]+$")

_SCRIPT_BOUNDARY = re.compile(
    r"(?<=[A-Za-z0-9])(?=[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff])"
    r"|(?<=[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff])(?=[A-Za-z0-9])"
)
"""Between a Latin word and a script without spaces, as in Chinese text with names of programs."""


@dataclass(frozen=True, slots=True)
class WordQuery:
    """All of `terms` are searched for, and a word that begins with `beginning`."""

    terms: tuple[str, ...]
    beginning: str = ""
    """The folded last word, which may be incomplete. Empty means that the query ends with a complete word."""
    last_terms: tuple[str, ...] = ()
    """Terms of the last word as it stands. A text that has them matches, too."""

    @property
    def is_empty(self) -> bool:
        return not self.terms and not self.beginning

    def has_term(self, term: str) -> bool:
        """Return whether a term of a text is one that is searched for."""
        is_whole = term in self.terms or term in self.last_terms
        return is_whole or bool(self.beginning and term.startswith(self.beginning))

    def count_matches(self, text: str) -> int:
        """Return how many different terms of the query a text has."""
        terms = set(_extract_indexed_terms(text))
        return len(terms.intersection(self.terms)) + self._has_last(terms)

    def _has_last(self, terms: set[str]) -> bool:
        if not self.beginning:
            return False
        return any(term.startswith(self.beginning) for term in terms) or bool(
            self.last_terms and terms.issuperset(self.last_terms)
        )


def parse_word_query(text: str) -> WordQuery:
    """Return what a person who types this text searches for. The last word may be the beginning of a word."""
    text = _SCRIPT_BOUNDARY.sub(" ", text)
    last = _LAST_WORD.search(text)
    if last is None:
        return WordQuery(_list_terms(text))
    terms, last_terms = _list_terms(text[: last.start()]), _list_terms(last[0])
    if terms and not last_terms:  # a stop word, which hardly begins a word when others precede it
        return WordQuery(terms)
    return WordQuery(terms, fold_word(last[0])[:MAX_TERM_CHARS], last_terms)


def list_indexed_terms(texts: Iterable[str]) -> list[str]:
    """Return each term of the texts once, up to `MAX_INDEXED_BYTES`."""
    terms: dict[str, None] = {}
    size = 0
    for text in texts:
        for term in _extract_indexed_terms(text):
            if term not in terms:
                size += len(term.encode())
                if size > MAX_INDEXED_BYTES:
                    return list(terms)
                terms[term] = None
    return list(terms)


def find_best_text(query: WordQuery, texts: Sequence[str]) -> int | None:
    """Return the index of the first text with the most terms of the query. `None` means that none has any."""
    counts = [query.count_matches(text) for text in texts]
    return counts.index(max(counts)) if any(counts) else None


def cut_excerpt(query: WordQuery, text: str) -> str:
    """Return at most `MAX_EXCERPT_CHARS` code points of a text around its first word of the query, as one line."""
    line = " ".join(text.split())
    if len(line) <= MAX_EXCERPT_CHARS:
        return line
    start = max(0, _find_first_match(query, line) - MAX_EXCERPT_CHARS // 4)
    start = line.rfind(" ", start - 20, start) + 1 if start and " " in line[max(0, start - 20) : start] else start
    before = "…" if start else ""
    rest = line[start:]
    room = MAX_EXCERPT_CHARS - len(before)
    return before + (rest if len(rest) <= room else rest[: room - 1].rstrip() + "…")


def _find_first_match(query: WordQuery, line: str) -> int:
    """Return where the first word with a term of the query begins. 0 also means that there is none."""
    for word in _WORD.finditer(line):
        for term in _extract_indexed_terms(word[0]):
            if query.has_term(term):
                return word.start() + max(0, word[0].lower().find(term))
    return 0


def locate_terms(query: WordQuery, line: str) -> tuple[tuple[int, int], ...]:
    """Return where words of the query stand in a line, in code points, ends excluded: ascending and apart.

    A word in any form counts as a whole. In scripts without spaces, only the searched characters count.
    """
    spans: list[tuple[int, int]] = []
    for word in _WORD.finditer(line):
        start = word.start()
        for part in _SCRIPT_BOUNDARY.sub("\n", word[0]).split("\n"):
            spans += [(start + first, start + end) for first, end in _locate_in_word(query, part)]
            start += len(part)
    return _join_spans(spans)


def _locate_in_word(query: WordQuery, word: str) -> Iterator[tuple[int, int]]:
    for term in _extract_indexed_terms(word):
        if not query.has_term(term):
            continue
        if not is_unspaced(term):
            yield 0, len(word)
            return
        for match in re.finditer(re.escape(term), word):
            yield match.span()


def _join_spans(spans: Sequence[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Return the spans in order, with those that touch as one."""
    joined: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if joined and start <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(end, joined[-1][1])
        else:
            joined.append((start, end))
    return tuple(joined)


def _list_terms(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(islice(_extract_terms(text), MAX_QUERY_TERMS)))


def _extract_indexed_terms(text: str) -> Iterator[str]:
    """Yield the terms of a text, and for pairs of characters also each of them, so that one character is found."""
    for term in _extract_terms(text):
        yield term
        if len(term) == 2 and is_unspaced(term):
            yield from term


def _extract_terms(text: str) -> Iterator[str]:
    return extract_terms(_SCRIPT_BOUNDARY.sub(" ", text))
