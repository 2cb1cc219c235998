"""The lines of retrieved passages, each with the heading, title, path and neighbours that it stands among.

The only home of how a passage becomes lines. Knows no question.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import cast

from offing_graphs.extractive.split import Kind, Unit, is_header, plain, units
from offing_graphs.extractive.words import Stems, Term, sequence, stems
from offing_graphs.parts.shapes import Piece

COMMON = 3
"""Sources from which on a word of all of them is common."""
NEIGHBOURS = 3
"""Units before and after a line that are its neighbours."""
WEAK = 0.3
"""Weight of a word that says little."""
LEAST_POOL = 40
"""Sentences that a pool counts as having at least, so that few passages do not make every word common."""
FLAT = 0.45
"""Weight of a word that is everywhere; one that is nowhere weighs 1."""
WHOLE = 420
"""Code points up to which a paragraph is quoted whole."""
WINDOW = 1_500
"""Code points from which a passage is a window that may begin and end in mid-sentence."""


@dataclass(frozen=True, slots=True)
class Line:
    """A unit of a passage, ready to be measured."""

    piece: Piece
    unit: Unit
    text: str
    """As a reader sees it."""
    stems: Stems
    order: tuple[str, ...]
    heading: Stems
    title: Stems
    """Of the source's title and path."""
    around: Stems
    block: Stems
    """Of its whole paragraph or list item, where that is short enough to be quoted whole; else of itself."""
    leads: bool
    """It is the first prose under its heading."""
    follows: bool
    """Another sentence of the same paragraph stands before it."""

    @property
    def span(self) -> tuple[str, int, int]:
        return self.piece.artefact, self.piece.start + self.unit.start, self.piece.start + self.unit.end


@dataclass(frozen=True, slots=True)
class Pool:
    """All lines of some passages, each stretch of text once, with how common each word is among them."""

    lines: tuple[Line, ...]
    counts: Counter[str] = field(default_factory=Counter[str])
    sources: Mapping[str, Stems] = field(default_factory=dict[str, Stems])
    """All that is known of each source, by its text."""
    shelves: Mapping[str, Stems] = field(default_factory=dict[str, Stems])
    """The folder of each source, where the folders of the sources differ; by its text."""
    common: frozenset[str] = frozenset()
    """Words of at least so many sources that they say where one is, not what it says."""
    vocabulary: frozenset[str] = frozenset()
    """Every word of lines, headings and titles."""

    def weight(self, term: Term) -> float:
        """1 for a word that no line holds, down to `FLAT` for one that is in most of them."""
        total = max(len(self.lines), LEAST_POOL)
        held = self.counts[term.whole] or (min(self.counts[p] for p in term.parts) if term.parts else 0)
        rarity = math.log(1 + (total - held + 0.5) / (held + 0.5)) / math.log(2 + 2 * total)
        return (FLAT + (1 - FLAT) * rarity) * (WEAK if term.weak else 1.0)

    def held(self, term: Term, line: Line) -> float:
        """How far a line holds a term, itself, through its heading and title, or as a common word of its source."""
        common = Stems(self.sources.get(line.piece.artefact, Stems()).words & self.common)
        return max(held_with_place(term, line), 0.5 * term.within(common))

    def holds(self, term: Term) -> bool:
        """Some line, heading or title holds at least half of the term."""
        return any(held_with_place(term, line) >= 0.5 for line in self.lines)

    def is_everywhere(self, term: Term) -> bool:
        """It is the name of a folder, or in most of several sources."""
        held = sum(term.within(source) >= 1 for source in self.sources.values())
        return self.names_a_shelf(term) or (held >= COMMON and held * 3 >= 2 * len(self.sources))

    def names_a_shelf(self, term: Term) -> bool:
        """The term is the name of a folder, such as a product's, and so says where to look."""
        return any(term.within(shelf) >= 0.9 for shelf in self.shelves.values())


def held_with_place(term: Term, line: Line) -> float:
    """How far a line holds a term, itself or through its heading and title."""
    return max(term.within(line.stems), term.within(line.heading), term.within(line.title))


def held_in_paragraph(term: Term, line: Line) -> float:
    """How far the paragraph of a line holds a term, itself or through its heading and title."""
    return max(held_with_place(term, line), term.within(line.block))


def pool_of(pieces: Iterable[Piece]) -> Pool:
    """The lines of these passages; where passages overlap, a line counts once."""
    found = tuple(pieces)
    lines = _unrepeated(found)
    counts = Counter(stem for line in lines for stem in (*line.stems.words, *line.stems.parts))
    sources = {artefact: _joined([line.stems for line in group]) for artefact, group in _by_source(lines).items()}
    held = Counter(word for source in sources.values() for word in source.words)
    common = frozenset(word for word, count in held.items() if count >= COMMON)
    places = (words for line in lines for words in (line.stems.words, line.heading.words, line.title.words))
    return Pool(tuple(lines), counts, sources, _shelves(found), common, frozenset[str]().union(*places))


def _unrepeated(pieces: Sequence[Piece]) -> list[Line]:
    lines: list[Line] = []
    seen: dict[str, list[tuple[int, int]]] = {}
    for piece in pieces:
        known = seen.setdefault(piece.artefact, [])
        for line in _lines_of(piece):
            _, start, end = line.span
            if not any(s <= start and end <= e for s, e in known):  # a window repeats lines, the first perhaps in part
                known.append((start, end))
                lines.append(line)
    return lines


def _by_source(lines: Iterable[Line]) -> dict[str, list[Line]]:
    found: dict[str, list[Line]] = {}
    for line in lines:
        found.setdefault(line.piece.artefact, []).append(line)
    return found


def path_of(piece: Piece) -> str:
    """The source's path within its folder. Empty: it is not known."""
    return piece.name


def _shelves(pieces: Sequence[Piece]) -> dict[str, Stems]:
    """The first folder in which the paths differ. Empty: all sources are in one folder, or no path is known."""
    paths = {piece.artefact: path_of(piece).split("/")[:-1] for piece in pieces}
    depth = max(map(len, paths.values()), default=0)
    for level in range(depth):
        names = {artefact: path[level] for artefact, path in paths.items() if len(path) > level}
        if len(set(names.values())) > 1:
            return {artefact: stems(name) for artefact, name in names.items()}
    return {}


def _read(piece: Piece) -> tuple[Line, ...]:
    heading, title = stems(piece.heading), stems(f"{piece.title}\n{path_of(piece).rsplit('.', 1)[0]}")
    all_units = units(piece.text)
    seen = [stems(plain(piece.text[u.start : u.end])) for u in all_units]
    found: list[Line] = []
    leads = not piece.heading or piece.start == 0
    columns = Stems()
    for n, unit in enumerate(all_units):
        stretch = piece.text[unit.start : unit.end]
        columns = columns if unit.kind is Kind.ROW else Stems()
        if unit.kind is Kind.HEADING:
            heading, leads = stems(plain(stretch)), True
        elif unit.kind is Kind.ROW and is_header(piece.text, unit):
            columns = seen[n]
        elif not _is_torn(piece, unit):
            text = stretch if unit.kind is Kind.CODE else plain(stretch)
            around = _joined(seen[max(0, n - NEIGHBOURS) : n + NEIGHBOURS + 1])
            follows = n > 0 and all_units[n - 1].block == unit.block
            under = _joined((heading, columns)) if columns else heading
            block = _joined([seen[m] for m in _block(all_units, n)])
            found.append(Line(piece, unit, text, seen[n], sequence(text), under, title, around, block, leads, follows))
            leads = leads and unit.kind is Kind.CODE
    return tuple(found)


def _block(all_units: Sequence[Unit], at: int) -> range:
    """The units of a paragraph or item that can be quoted whole; else the one unit."""
    first, last = block_of(all_units, at)
    whole = all_units[last].end - all_units[first].start <= WHOLE
    return range(first, last + 1) if whole else range(at, at + 1)


def block_of(all_units: Sequence[Unit], at: int) -> tuple[int, int]:
    """The first and the last unit of the block that a unit belongs to."""
    first = last = at
    while first and all_units[first - 1].block == all_units[at].block:
        first -= 1
    while last + 1 < len(all_units) and all_units[last + 1].block == all_units[at].block:
        last += 1
    return first, last


_lines_of = cast("Callable[[Piece], tuple[Line, ...]]", lru_cache(maxsize=2_048)(_read))


def _is_torn(piece: Piece, unit: Unit) -> bool:
    """A window may end in the middle of its last sentence."""
    if len(piece.text) < WINDOW or unit.end < len(piece.text.rstrip()) - 1:
        return False
    return not piece.text.rstrip().endswith((".", "!", "?", "|", "`", ")", "*"))


def _joined(several: Sequence[Stems]) -> Stems:
    return Stems(
        frozenset[str]().union(*(s.words for s in several)), frozenset[str]().union(*(s.parts for s in several))
    )
