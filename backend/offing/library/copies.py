"""Finds where a text was copied to, and takes the copies out. Pure; knows no table.

A stretch counts as a copy when it shares a run of `RUN` words with the text, whatever stands between the words:
prompts, reports and JSON break lines and quote differently. Shorter quotes are only known when they are handed in.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any

ERASED = "[erased]"

RUN = 8
"""Words in a row that make a copy."""
SHORTEST_QUOTE = 3
"""Words of a quote that is looked for by itself; shorter ones would match anything."""

_WORD = re.compile(r"\\[nrtu\"](?:[0-9a-f]{4})?|\w+")

OWNERS = ("artefact", "artefact_id")
"""Names under which JSON says whose text stands beside it."""
KEPT = frozenset((*OWNERS, "source", "source_id"))
"""Names beside them whose values identify and do not quote."""


class Copies:
    """What is to be taken out: copies of some texts, known by the ids of their artefacts."""

    def __init__(
        self,
        texts: Iterable[str],
        *,
        artefacts: Iterable[str] = (),
        quotes: Iterable[str] = (),
        names: Iterable[str] = (),
    ) -> None:
        """`quotes`: pieces of the texts that were quoted. `names`: titles, taken out where they stand alone."""
        self._artefacts = frozenset(artefacts)
        self._names = frozenset(n for n in names if n)
        self._runs: dict[int, set[int]] = {}
        for text in texts:
            self._learn(text, RUN)
        for quote in quotes:
            self._learn(quote, RUN if len(_words(quote)) >= SHORTEST_QUOTE else 0)

    def _learn(self, text: str, most: int) -> None:
        words = _words(text)
        size = min(most, len(words))
        if size >= SHORTEST_QUOTE:
            self._runs.setdefault(size, set()).update(h for h, _, _ in _hashes(words, size))

    def out_of(self, text: str) -> str:
        """The text with every copy replaced by `ERASED`; the same text when there is none."""
        if text in self._names:
            return ERASED
        words = _words(text)
        stretches = [
            (first, last)
            for size, known in self._runs.items()
            for found, first, last in _hashes(words, size)
            if found in known
        ]
        if not stretches:
            return text
        parts: list[str] = []
        at = 0
        for first, last in _merged(sorted(stretches)):
            parts += [text[at:first], ERASED]
            at = last
        return "".join([*parts, text[at:]])

    def out_of_json(self, value: Any) -> Any:
        """The same for every string in a JSON value. What says to be of another artefact is left alone."""
        match value:
            case str():
                return self.out_of(value)
            case list():
                return [self.out_of_json(item) for item in value]  # pyright: ignore[reportUnknownVariableType]
            case dict():
                return self._out_of_object(value)  # pyright: ignore[reportUnknownArgumentType]
            case _:
                return value

    def _out_of_object(self, value: dict[str, Any]) -> dict[str, Any]:
        owner = _owner(value)
        if owner in self._artefacts:
            return {k: v if k in KEPT or not isinstance(v, str) else ERASED for k, v in value.items()}
        if owner is not None:
            return value
        return {k: self.out_of_json(v) for k, v in value.items()}


def _owner(value: dict[str, Any]) -> str | None:
    """The artefact whose text an object carries. None: it does not say."""
    span: Any = value.get("span")
    named: dict[str, Any] = {**span, **value} if isinstance(span, dict) else value
    return next((named[name] for name in OWNERS if isinstance(named.get(name), str)), None)


def _words(text: str) -> list[tuple[str, int, int]]:
    """Words without case, with their places."""
    return [(m.group().casefold(), m.start(), m.end()) for m in _WORD.finditer(text) if m.group()[0] != "\\"]


def _hashes(words: list[tuple[str, int, int]], size: int) -> Iterator[tuple[int, int, int]]:
    """Every run of `size` words: a hash, where it begins and where it ends."""
    for at in range(len(words) - size + 1):
        run = words[at : at + size]
        yield hash(tuple(word for word, _, _ in run)), run[0][1], run[-1][2]


def _merged(stretches: list[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for first, last in stretches:
        if merged and first <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(last, merged[-1][1])
        else:
            merged.append((first, last))
    return merged
