"""The lines of retrieved passages, each with its heading, title, path and neighbors."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import cast

from offing_graphs.extractive.text_units import (
    Unit,
    UnitKind,
    is_table_header,
    measure_width,
    split_units,
    strip_markup,
)
from offing_graphs.extractive.word_forms import Stems, Term, extract_stems, list_stems
from offing_graphs.shared.schemas import RetrievedPassage

MIN_COMMON_SOURCES = 3
"""Minimum number of sources that contain a word before the word counts as common."""
MAX_NEIGHBORS = 3
"""Number of units before and after a line that count as its neighbors."""
WEAK_WORD_FACTOR = 0.3
"""Factor for the weight of a weak word."""
MIN_POOL_LINES = 40
"""Minimum number of lines that a pool counts as having.

It prevents words of a small pool from counting as common.
"""
MIN_WORD_WEIGHT = 0.45
"""Weight of a word that occurs in every line. A word that occurs in no line has weight 1."""
MAX_WHOLE_PARAGRAPH_CHARS = 420
"""Maximum width of a paragraph that is quoted whole, see `measure_width`."""
MIN_WINDOW_CHARS = 1_500
"""Minimum number of characters of a passage that counts as a text window.

A text window may begin and end in mid-sentence.
"""


@dataclass(frozen=True, slots=True)
class PassageLine:
    """A unit of a passage with the stems that scoring needs."""

    passage: RetrievedPassage
    unit: Unit
    text: str
    """The text without markup."""
    stems: Stems
    stem_sequence: tuple[str, ...]
    heading: Stems
    title: Stems
    """Stems of the source's title and path."""
    neighbor_stems: Stems
    block_stems: Stems
    """Stems of the paragraph or list item if it is short enough to be quoted whole, else of the line."""
    is_first_prose: bool
    """Whether the line is the first prose under its heading."""
    continues_paragraph: bool
    """Whether a sentence of the same paragraph precedes the line."""

    @property
    def span(self) -> tuple[str, int, int]:
        return self.passage.text_id, self.passage.start + self.unit.start, self.passage.start + self.unit.end


@dataclass(frozen=True, slots=True)
class LinePool:
    """The lines of several passages without repetition, with the frequency of each word."""

    lines: tuple[PassageLine, ...]
    counts: Counter[str] = field(default_factory=Counter[str])
    sources: Mapping[str, Stems] = field(default_factory=dict[str, Stems])
    """All stems of each source, by text id."""
    folders: Mapping[str, Stems] = field(default_factory=dict[str, Stems])
    """Stems of the folder of each source, by text id.

    Empty if the folders of the sources do not differ.
    """
    common: frozenset[str] = frozenset()
    """Words that occur in at least `MIN_COMMON_SOURCES` sources."""
    vocabulary: frozenset[str] = frozenset()
    """Every word of the lines, headings and titles."""

    def weigh(self, term: Term) -> float:
        """Return the weight of a term.

        It is 1 if no line contains the term, and falls to `MIN_WORD_WEIGHT` if most lines do. Weak
        words count less.
        """
        total = max(len(self.lines), MIN_POOL_LINES)
        held = self.counts[term.stem] or (min(self.counts[p] for p in term.parts) if term.parts else 0)
        rarity = math.log(1 + (total - held + 0.5) / (held + 0.5)) / math.log(2 + 2 * total)
        return (MIN_WORD_WEIGHT + (1 - MIN_WORD_WEIGHT) * rarity) * (WEAK_WORD_FACTOR if term.is_weak else 1.0)

    def match(self, term: Term, line: PassageLine) -> float:
        """Return how well a line matches a term.

        The match is by the line itself, by its heading and title, or by a common word of its
        source.
        """
        common = Stems(self.sources.get(line.passage.text_id, Stems()).words & self.common)
        return max(match_with_heading(term, line), 0.5 * term.match(common))

    def has_term(self, term: Term) -> bool:
        """Return whether any line, heading or title matches the term at least by half."""
        return any(match_with_heading(term, line) >= 0.5 for line in self.lines)

    def is_common(self, term: Term) -> bool:
        """Return whether the term is a folder name or occurs in most of at least `MIN_COMMON_SOURCES` sources."""
        held = sum(term.match(source) >= 1 for source in self.sources.values())
        return self.is_folder_name(term) or (held >= MIN_COMMON_SOURCES and held * 3 >= 2 * len(self.sources))

    def is_folder_name(self, term: Term) -> bool:
        """Return whether the term is the name of a folder, such as a product's, which says where to look."""
        return any(term.match(shelf) >= 0.9 for shelf in self.folders.values())


def match_with_heading(term: Term, line: PassageLine) -> float:
    """Return how well a line, its heading or its title matches a term."""
    return max(term.match(line.stems), term.match(line.heading), term.match(line.title))


def match_in_paragraph(term: Term, line: PassageLine) -> float:
    """Return how well the paragraph of a line, its heading or its title matches a term."""
    return max(match_with_heading(term, line), term.match(line.block_stems))


def build_pool(passages: Iterable[RetrievedPassage]) -> LinePool:
    """Build the pool of lines of these passages. A line of overlapping passages counts once."""
    passages_read = tuple(passages)
    lines = _deduplicate_lines(passages_read)
    counts = Counter(stem for line in lines for stem in (*line.stems.words, *line.stems.parts))
    sources = {
        text_id: _merge_stems([line.stems for line in group]) for text_id, group in _group_by_source(lines).items()
    }
    held = Counter(word for source in sources.values() for word in source.words)
    common = frozenset(word for word, count in held.items() if count >= MIN_COMMON_SOURCES)
    stem_sets = (words for line in lines for words in (line.stems.words, line.heading.words, line.title.words))
    return LinePool(
        tuple(lines), counts, sources, _find_folders(passages_read), common, frozenset[str]().union(*stem_sets)
    )


def _deduplicate_lines(passages: Sequence[RetrievedPassage]) -> list[PassageLine]:
    lines: list[PassageLine] = []
    seen: dict[str, list[tuple[int, int]]] = {}
    for passage in passages:
        known = seen.setdefault(passage.text_id, [])
        for line in _list_lines(passage):
            _, start, end = line.span
            # a text window repeats lines, the first of them perhaps only in part
            if not any(s <= start and end <= e for s, e in known):
                known.append((start, end))
                lines.append(line)
    return lines


def _group_by_source(lines: Iterable[PassageLine]) -> dict[str, list[PassageLine]]:
    groups: dict[str, list[PassageLine]] = {}
    for line in lines:
        groups.setdefault(line.passage.text_id, []).append(line)
    return groups


def get_path(passage: RetrievedPassage) -> str:
    """Return the path of the source within its folder. Empty means that it is not known."""
    return passage.name


def _find_folders(passages: Sequence[RetrievedPassage]) -> dict[str, Stems]:
    """Return the first folder of each path in which the paths differ.

    Returns an empty mapping if all sources are in one folder or if no path is known.
    """
    paths = {piece.text_id: get_path(piece).split("/")[:-1] for piece in passages}
    depth = max(map(len, paths.values()), default=0)
    for level in range(depth):
        names = {text_id: path[level] for text_id, path in paths.items() if len(path) > level}
        if len(set(names.values())) > 1:
            return {text_id: extract_stems(name) for text_id, name in names.items()}
    return {}


def _split_passage(passage: RetrievedPassage) -> tuple[PassageLine, ...]:
    heading, title = (
        extract_stems(passage.heading),
        extract_stems(f"{passage.title}\n{get_path(passage).rsplit('.', 1)[0]}"),
    )
    all_units = split_units(passage.text)
    seen = [extract_stems(strip_markup(passage.text[u.start : u.end])) for u in all_units]
    lines: list[PassageLine] = []
    leads = not passage.heading or passage.start == 0
    columns = Stems()
    for n, unit in enumerate(all_units):
        source = passage.text[unit.start : unit.end]
        columns = columns if unit.kind is UnitKind.ROW else Stems()
        if unit.kind is UnitKind.HEADING:
            heading, leads = extract_stems(strip_markup(source)), True
        elif unit.kind is UnitKind.ROW and is_table_header(passage.text, unit):
            columns = seen[n]
        elif not _is_truncated(passage, unit):
            text = source if unit.kind is UnitKind.CODE else strip_markup(source)
            around = _merge_stems(seen[max(0, n - MAX_NEIGHBORS) : n + MAX_NEIGHBORS + 1])
            follows = n > 0 and all_units[n - 1].block == unit.block
            under = _merge_stems((heading, columns)) if columns else heading
            block = _merge_stems([seen[m] for m in _find_quotable_block(passage.text, all_units, n)])
            lines.append(
                PassageLine(passage, unit, text, seen[n], list_stems(text), under, title, around, block, leads, follows)
            )
            leads = leads and unit.kind is UnitKind.CODE
    return tuple(lines)


def _find_quotable_block(text: str, all_units: Sequence[Unit], index: int) -> range:
    """Return the units of a paragraph or item that is quoted whole, else the single unit."""
    first, last = find_block(all_units, index)
    whole = measure_width(text[all_units[first].start : all_units[last].end]) <= MAX_WHOLE_PARAGRAPH_CHARS
    return range(first, last + 1) if whole else range(index, index + 1)


def find_block(all_units: Sequence[Unit], index: int) -> tuple[int, int]:
    """Return the first and the last unit of the block of a unit."""
    first = last = index
    while first and all_units[first - 1].block == all_units[index].block:
        first -= 1
    while last + 1 < len(all_units) and all_units[last + 1].block == all_units[index].block:
        last += 1
    return first, last


_list_lines = cast("Callable[[RetrievedPassage], tuple[PassageLine, ...]]", lru_cache(maxsize=2_048)(_split_passage))


def _is_truncated(passage: RetrievedPassage, unit: Unit) -> bool:
    """Return whether the end of a text window cuts the unit."""
    if len(passage.text) < MIN_WINDOW_CHARS or unit.end < len(passage.text.rstrip()) - 1:
        return False
    return not passage.text.rstrip().endswith((".", "!", "?", "|", "`", ")", "*"))


def _merge_stems(stem_sets: Sequence[Stems]) -> Stems:
    return Stems(
        frozenset[str]().union(*(s.words for s in stem_sets)), frozenset[str]().union(*(s.parts for s in stem_sets))
    )
