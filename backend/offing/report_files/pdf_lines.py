"""Lines of a PDF file: text of several styles, broken to a width and ordered by direction.

fpdf2 orders the directions of one text of one style. A paragraph here has several styles, such as the raised numbers
of citations, and its order is that of the whole paragraph.
"""

import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from fpdf.bidi import BidiParagraph
from fpdf.enums import TextDirection

from offing.core.text_direction import is_right_to_left, is_right_to_left_char


@dataclass(frozen=True, slots=True)
class TextStyle:
    size: float
    """In points."""
    color: tuple[int, int, int] = (29, 36, 51)
    is_bold: bool = False
    is_slanted: bool = False
    is_raised: bool = False
    """Whether it is smaller and higher, as the numbers of citations are."""


@dataclass(frozen=True, slots=True)
class StyledText:
    text: str
    style: TextStyle
    link: int | str | None = None
    """Number of a place in the file, or a web address."""


@dataclass(frozen=True, slots=True)
class TextRun:
    """Text of one font and one direction."""

    text: str
    style: TextStyle
    link: int | str | None
    family: str
    level: int
    """Depth of nested directions. Text with an odd level is read from right to left."""
    width: float = 0.0
    """In millimeters."""

    @property
    def is_rtl(self) -> bool:
        return self.level % 2 == 1


@dataclass(frozen=True, slots=True)
class Line:
    runs: tuple[TextRun, ...]
    """From left to right, as they are drawn."""
    is_rtl: bool
    """Whether its paragraph is read from right to left."""
    size: float
    """Size of its largest text in points."""

    @property
    def width(self) -> float:
        return sum(run.width for run in self.runs)


Measure = Callable[[TextRun], float]
"""Returns the width of a run in millimeters."""
FamilyChooser = Callable[[str], list[str]]

_OPENING = frozenset("([{<\u00ab\u2018\u201c\u3008\u300a\u300c\u300e\u3010\u3014\uff08\uff3b\uff5b")
_BREAK_AFTER = frozenset("-/\u2010\u2013\u2014?&=_")


class Paragraph:
    """A paragraph that can be broken into lines of any width."""

    def __init__(self, parts: Sequence[StyledText], choose_families: FamilyChooser, measure: Measure) -> None:
        self._parts, self._measure = parts, measure
        self._text = "".join(part.text for part in parts)
        self._owners = [number for number, part in enumerate(parts) for _ in part.text]
        self.is_rtl = is_right_to_left(self._text)
        self._levels = resolve_levels(self._text, is_rtl=self.is_rtl)
        self._families = choose_families(self._text)

    def break_lines(self, width: float) -> list[Line]:
        """Return the lines. A word that is wider than a line is broken anywhere."""
        lines: list[Line] = []
        start = end = 0
        used = 0.0
        for first, last in self._split_words(width):
            whole = self._measure_range(first, last)
            if end > start and used + self._measure_range(first, self._trim(first, last)) > width:
                lines.append(self._build_line(start, end))
                start, used = first, 0.0
            end, used = last, used + whole
        return [*lines, self._build_line(start, end)] if self._text else []

    def measure_extremes(self) -> tuple[float, float]:
        """Return the widths of the widest word and of the whole paragraph on one line."""
        words = [self._measure_range(first, self._trim(first, last)) for first, last in find_words(self._text)]
        return max(words, default=0.0), self._measure_range(0, len(self._text))

    def _split_words(self, width: float) -> Iterator[tuple[int, int]]:
        for first, last in find_words(self._text):
            if self._measure_range(first, self._trim(first, last)) <= width:
                yield first, last
            else:
                yield from self._split_word(first, last, width)

    def _split_word(self, first: int, last: int, width: float) -> Iterator[tuple[int, int]]:
        start, used = first, 0.0
        for at in range(first, last):
            wide = self._measure_range(at, at + 1)
            if at > start and used + wide > width and not unicodedata.combining(self._text[at]):
                yield start, at
                start, used = at, 0.0
            used += wide
        yield start, last

    def _trim(self, first: int, last: int) -> int:
        return first + len(self._text[first:last].rstrip())

    def _measure_range(self, first: int, last: int) -> float:
        return sum(self._measure(run) for run in self._list_runs(first, last))

    def _list_runs(self, first: int, last: int) -> Iterator[TextRun]:
        def properties(at: int) -> tuple[int, str, int]:
            return self._owners[at], self._families[at], self._levels[at]

        for (owner, family, level), group in groupby(range(first, last), properties):
            places = list(group)
            part = self._parts[owner]
            yield TextRun(self._text[places[0] : places[-1] + 1], part.style, part.link, family, level)

    def _build_line(self, start: int, end: int) -> Line:
        runs = [replace(run, width=self._measure(run)) for run in self._list_runs(start, self._trim(start, end))]
        size = max((run.style.size for run in runs), default=self._parts[0].style.size)
        return Line(tuple(order_visually(runs)), self.is_rtl, size)


def find_words(text: str) -> Iterator[tuple[int, int]]:
    """Yield start and end of each piece of text after which a line may end. Spaces belong to the word before them."""
    start = 0
    for at in range(1, len(text)):
        if _may_break(text[at - 1], text[at]):
            yield start, at
            start = at
    if text:
        yield start, len(text)


def _may_break(before: str, after: str) -> bool:
    if after.isspace() or before in _OPENING:
        return False
    if before.isspace():
        return True
    if _is_wide(before) or _is_wide(after):
        return unicodedata.category(after) not in ("Po", "Pe", "Pf", "Mn", "Lm") and after != "["
    return before in _BREAK_AFTER and after.isalnum()


def _is_wide(character: str) -> bool:
    return unicodedata.east_asian_width(character) in ("W", "F")


def resolve_levels(text: str, *, is_rtl: bool) -> list[int]:
    """Return the level of each character by the Unicode Bidirectional Algorithm."""
    if not is_rtl and not any(is_right_to_left_char(character) for character in text):
        return [0] * len(text)
    levels = [int(is_rtl)] * len(text)
    direction = TextDirection.RTL if is_rtl else TextDirection.LTR
    for one in BidiParagraph(text, direction, preserve_bn_chars=True).get_characters():
        levels[one.character_index] = one.embedding_level
    return levels


def order_visually(runs: Sequence[TextRun]) -> list[TextRun]:
    """Return the runs of a line in the order in which they stand from left to right."""
    ordered = list(runs)
    for level in range(max((run.level for run in runs), default=0), 0, -1):
        groups = [list(group) for _, group in groupby(ordered, lambda run, least=level: run.level >= least)]
        turned = [group[::-1] if group[0].level >= level else group for group in groups]
        ordered = [run for group in turned for run in group]
    return ordered
