"""Group the words of a page to rows, and the words of a row to chunks: words with no more than a space between them."""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from operator import itemgetter
from typing import NamedTuple

from offing.library.pdf.geometry import Line, Word

MAX_SPACE = 0.75
"""Maximum width of a space between words, in heights of the line."""
MIN_SPACE = 0.05
"""Minimum width of a space, in heights of the line. pdfium also writes a space where a character was only shifted."""
MAX_NUMBER_SPACE = 0.5
"""Maximum width of a space between two numbers, in heights of the line."""
MAX_SIGN_GAP = 12.0
"""Maximum distance of a currency sign from its number, in heights of the line."""

_SIGNED = r"[$\u20ac\u00a3\u00a5]?\s?[(+\-\u2013\u2014\u2212]?\s?[$\u20ac\u00a3\u00a5]?\s?(?:\d[\d,.]*|\.\d+)"
VALUE = re.compile(
    rf"(?:\*{{0,2}}{_SIGNED}\s?(?:%|x|bps|pts?|\u00a2)?\s?\)?\s?%?(?:\s?[*\u2020\u2021]|\s?\(\w{{1,2}}\))?"
    r"|[$\u20ac\u00a3]?\s?[-\u2013\u2014\u2212]+\s?%?|N/?A|NM|n/?[am]|nil|\*{2,6}|\([XxZz]\))$"
)
"""Matches a number of a table with its signs, or what stands for no number."""
YEAR = re.compile(r"(?:FY\s?)?(?:19|20)\d\d(?:\s?[*\u2020]|\s?\(\w\))?$")
_CURRENCY = re.compile(r"(?:US|C|A|R)?[$\u20ac\u00a3\u00a5](?:\s?\()?$|\($")
_CLOSING = re.compile(r"[)%\u00a2]{1,2}[*\u2020]?$")
_MARKER = re.compile(
    r"[\u2022\u25aa\u25e6\u25cf\u2013*\u00b7\uf0b7-]$|\(?(?:[a-z]|\d{1,2}|[ivx]{1,4})[.)]$|\[\d{1,3}\]$"
)


MAX_SIGN_CHARS = 5
"""Maximum characters of a currency sign, a closing sign or the marker of a list."""
MAX_VALUE_CHARS = 40
"""Maximum characters of a value, so that a long text is not compared again for each of its words."""


_BY_X0 = itemgetter(1)


def is_value(text: str) -> bool:
    """Return whether a text is a number of a table or stands for no number."""
    return len(text) <= MAX_VALUE_CHARS and VALUE.match(text) is not None


def is_year(text: str) -> bool:
    return len(text) <= MAX_VALUE_CHARS and YEAR.match(text) is not None


class Chunk(NamedTuple):
    """Words of a row that belong together."""

    text: str
    x0: float
    x1: float
    y0: float
    y1: float
    words: int

    @property
    def is_value(self) -> bool:
        return is_value(self.text)


class Row(NamedTuple):
    """The chunks on one baseline, from left to right."""

    chunks: tuple[Chunk, ...]
    x0: float
    x1: float
    y0: float
    y1: float

    @property
    def height(self) -> float:
        return self.y1 - self.y0

    @property
    def text(self) -> str:
        """The words of the row. Two spaces separate its chunks."""
        return "  ".join(chunk.text for chunk in self.chunks)

    def has_gap(self, heights: float) -> bool:
        """Return whether the space between two chunks is wider than this many heights of the row."""
        return any(b.x0 - a.x1 > heights * self.height for a, b in pairwise(self.chunks))


def group_rows(words: Sequence[Word]) -> list[Row]:
    """Return the rows from top to bottom."""
    return [make_row(group) for group in group_words(words)]


def group_words(words: Sequence[Word]) -> Iterator[list[Word]]:
    """Yield the words of each row from top to bottom."""
    depths = [-(y0 + y1) for _, _, _, y0, y1 in words]
    group, center, height, reach = list[Word](), 0.0, 0.0, 0.0
    for number in sorted(range(len(words)), key=depths.__getitem__):
        word, at = words[number], depths[number] / -2
        tall = word.y1 - word.y0
        # Most words are within the reach of the row's type. Only a taller word reaches further.
        if group and center - at > reach and center - at > 0.45 * min(tall, 2 * height):
            yield group
            group = []
        if not group or tall > height:
            center, height = (at if not group else max(at, center - 0.2 * tall)), tall
            reach = 0.45 * height
        group.append(word)
    if group:
        yield group


def make_row(words: list[Word]) -> Row:
    """Return the row of at least one word."""
    words.sort(key=_BY_X0)
    chunks = tuple(group_chunks(words))
    if len(chunks) == 1:
        return Row(chunks, *chunks[0][1:5])
    lead = max(chunks, key=lambda chunk: len(chunk.text))
    return Row(chunks, chunks[0].x0, max(chunk.x1 for chunk in chunks), lead.y0, lead.y1)


def group_chunks(words: Sequence[Word]) -> Iterator[Chunk]:
    """Yield the chunks of a row of at least one word. The words are sorted from left to right."""
    text, x0, x1, y0, y1 = words[0]
    count, first = 1, True
    for word in words[1:]:
        next_text, next_x0, next_x1, next_y0, next_y1 = word
        gap, height = next_x0 - x1, y1 - y0
        is_usual = (
            MIN_SPACE * height <= gap <= MAX_NUMBER_SPACE * height
            and (len(text) > MAX_SIGN_CHARS or text.isalnum())
            and (len(next_text) > MAX_SIGN_CHARS or next_text.isalnum())
        )
        joint = " " if is_usual else _find_joint(text, word, gap, height, first)
        if joint is None:
            yield Chunk(text, x0, x1, y0, y1, count)
            first = False
            text, x0, x1, y0, y1, count = next_text, next_x0, next_x1, next_y0, next_y1, 1
        else:
            text, x1, count = text + joint + next_text, next_x1 if next_x1 > x1 else x1, count + 1
            if next_y1 - next_y0 > height:
                y0, y1 = next_y0, next_y1
    yield Chunk(text, x0, x1, y0, y1, count)


def _find_joint(text: str, word: Word, gap: float, height: float, first: bool) -> str | None:
    """Return what joins a word to the chunk before it: a space, nothing, or `None` for a new chunk."""
    if len(text) <= 4 and _CURRENCY.match(text) and is_value(word.text.strip("()") or "x"):
        return "" if gap < MAX_SIGN_GAP * height else None
    if len(word.text) <= 3 and _CLOSING.match(word.text) and is_value(text.strip("$ (") or "x"):
        return "" if gap < 3 * height else None
    if first and len(text) <= 5 and _MARKER.match(text) and not is_value(word.text):
        return " " if gap < 6 * height else None
    if len(word.text) <= 4 and _CURRENCY.match(word.text) and is_value(text):
        return None
    if gap < MIN_SPACE * height:
        return ""
    if gap > MAX_NUMBER_SPACE * height and is_value(word.text) and is_value(text):
        return None
    return " " if gap <= MAX_SPACE * height else None


def row_as_line(row: Row) -> Line:
    """Return a row as a line of text. A row of separate chunks stands alone."""
    wide = row.has_gap(2)
    text = row.text if wide else " ".join(chunk.text for chunk in row.chunks)
    return Line(text, row.x0, row.x1, row.y0, row.y1, wide)
