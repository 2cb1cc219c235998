"""Find copies of a text in other texts and erase them.

A range counts as a copy if it shares `MIN_COPIED_WORDS` successive words with the text. Characters between
the words are ignored, because prompts, reports and JSON break lines and quote differently. Shorter quotes
are found only if they are passed in.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any

ERASED = "[erased]"

MIN_COPIED_WORDS = 8
"""Minimum number of successive words that count as a copy."""
MIN_QUOTE_WORDS = 3
"""Minimum number of words of a quote that is searched for. Shorter ones would match too much."""

_WORD = re.compile(r"\\[nrtu\"](?:[0-9a-f]{4})?|\w+")

OWNER_KEY = "text_id"
"""JSON key that names the extracted text an object belongs to."""
PRESERVED_KEYS = frozenset((OWNER_KEY, "source", "source_id"))
"""JSON keys whose values are identifiers and not quotes."""


class CopyEraser:
    """Erases copies of some texts, which are known by their text ids."""

    def __init__(
        self,
        texts: Iterable[str],
        *,
        text_ids: Iterable[str] = (),
        quotes: Iterable[str] = (),
        names: Iterable[str] = (),
    ) -> None:
        """Collect what to erase.

        `quotes` are quoted parts of the texts. `names` are titles, erased where they are a whole string.
        """
        self._text_ids = frozenset(text_ids)
        self._names = frozenset(n for n in names if n)
        self._runs: dict[int, set[int]] = {}
        for text in texts:
            self._add_text(text, MIN_COPIED_WORDS)
        for quote in quotes:
            self._add_text(quote, MIN_COPIED_WORDS if len(_words(quote)) >= MIN_QUOTE_WORDS else 0)

    def _add_text(self, text: str, max_words: int) -> None:
        words = _words(text)
        size = min(max_words, len(words))
        if size >= MIN_QUOTE_WORDS:
            self._runs.setdefault(size, set()).update(h for h, _, _ in _hash_shingles(words, size))

    def erase(self, text: str) -> str:
        """Return the text with every copy replaced by `ERASED`, or the same text if there is none."""
        if text in self._names:
            return ERASED
        words = _words(text)
        ranges = [
            (first, last)
            for size, hashes in self._runs.items()
            for digest, first, last in _hash_shingles(words, size)
            if digest in hashes
        ]
        if not ranges:
            return text
        parts: list[str] = []
        at = 0
        for first, last in _merge_ranges(sorted(ranges)):
            parts += [text[at:first], ERASED]
            at = last
        return "".join([*parts, text[at:]])

    def erase_json(self, value: Any) -> Any:
        """Erase copies from every string in a JSON value. Objects that belong to another text are left unchanged."""
        match value:
            case str():
                return self.erase(value)
            case list():
                return [self.erase_json(item) for item in value]  # pyright: ignore[reportUnknownVariableType]
            case dict():
                return self._erase_object(value)  # pyright: ignore[reportUnknownArgumentType]
            case _:
                return value

    def _erase_object(self, value: dict[str, Any]) -> dict[str, Any]:
        owner = _find_owner(value)
        if owner in self._text_ids:
            return {k: v if k in PRESERVED_KEYS or not isinstance(v, str) else ERASED for k, v in value.items()}
        if owner is not None:
            return value
        return {k: self.erase_json(v) for k, v in value.items()}


def _find_owner(value: dict[str, Any]) -> str | None:
    """Return the text id that an object belongs to, or `None` if it names none."""
    span: Any = value.get("span")
    named: dict[str, Any] = {**span, **value} if isinstance(span, dict) else value
    text_id = named.get(OWNER_KEY)
    return text_id if isinstance(text_id, str) else None


def _words(text: str) -> list[tuple[str, int, int]]:
    """Return the case-folded words with their positions."""
    return [(m.group().casefold(), m.start(), m.end()) for m in _WORD.finditer(text) if m.group()[0] != "\\"]


def _hash_shingles(words: list[tuple[str, int, int]], word_count: int) -> Iterator[tuple[int, int, int]]:
    """Yield every shingle of `word_count` words: its hash, start and end."""
    for at in range(len(words) - word_count + 1):
        run = words[at : at + word_count]
        yield hash(tuple(word for word, _, _ in run)), run[0][1], run[-1][2]


def _merge_ranges(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for first, last in ranges:
        if merged and first <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(last, merged[-1][1])
        else:
            merged.append((first, last))
    return merged
