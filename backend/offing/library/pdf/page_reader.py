"""Read lines, words and drawn lines of a page with pypdfium2.

To read the words of a page with their boxes takes almost as long as to extract its plain text. So a page is first read
by the first and the last character of each line, and only a page that needs more is read by words.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from offing.library.pdf.geometry import Line, Ruling, Word
from offing.library.pdf.paths import iter_path_boxes
from offing.library.pdf.pdfium_calls import (
    Boxes,
    BoxTuple,
    find_char_positions,
    get_address,
    read_angle,
    read_char_boxes,
)

MAX_PAGE_WORDS = 20_000
"""Maximum words of a page whose layout is analyzed. A page with more is read in the order of its file."""
MAX_PAGE_OBJECTS = 20_000
"""Maximum objects of a page that are searched for drawn lines."""
MAX_RULINGS = 6_000
"""Maximum drawn lines of a page. A page with more has a picture, not a table, so none of them is used."""
MAX_RULING_POINTS = 3.0
"""Maximum thickness of a drawn line in points."""
MIN_RULING_POINTS = 6.0
"""Minimum length of a drawn line in points."""

MIN_WIDE_GAP = 1.2
"""Minimum width of a space that separates cells or columns, in heights of the line."""

HYPHENS = "\ufffe\x02"
"""The characters that pdfium writes for a hyphen at the end of a line."""

_LINE = re.compile(rf"[^\s{HYPHENS}](?:[^\r\n{HYPHENS}]*[^\s{HYPHENS}])?[ \t]*[{HYPHENS}]?")
_WORD = re.compile(rf"[^\s{HYPHENS}]+[{HYPHENS}]?")
LEADER = re.compile(
    r"[._\-=\u2026](?:[._\-=\u2026]{3,}|(?<=[.\u2026_])[ \t](?:[.\u2026_][ \t]){2,}[.\u2026_]?)",
)
"""Matches dots or lines between a text and its number. It starts with one set of characters, which is found fast."""


class PageReader:
    """Reads one page. Close it after use."""

    def __init__(self, document: Any, number: int) -> None:
        from pypdfium2 import raw

        self._raw: Any = raw
        self._page: Any = document[number]
        self._text_page: Any = self._page.get_textpage()
        self._handle = get_address(self._text_page.raw)
        self.text = _split_surrogates(str(self._text_page.get_text_range()))
        self._has_other_positions = len(self.text) != self._text_page.count_chars()
        self._turn = self._find_turn()
        self._spans = list[tuple[int, int]]()

    def close(self) -> None:
        self._text_page.close()
        self._page.close()

    def read_lines(self) -> list[Line]:
        """Return the lines in the order of the file, with the boxes of upright text.

        A page whose text is turned by 90, 180 or 270 degrees is turned back.
        """
        matches = list(_LINE.finditer(self.text))
        texts = [match.group() for match in matches]
        starts = [match.start() for match in matches]
        ends = [start + len(text.rstrip(HYPHENS + " \t")) - 1 for start, text in zip(starts, texts, strict=True)]
        self._spans = [(start, end + 1) for start, end in zip(starts, ends, strict=True)]
        first, last = self._read_boxes(starts), self._read_boxes(ends)
        lines = list[Line]()
        for text, (start, end), x0, x1, y0, y1, last_x1, last_y0 in zip(
            texts, self._spans, *first, last.x1, last.y0, strict=True
        ):
            if abs(last_y0 - y0) > y1 - y0:
                last_x1 = x1 + (end - start - 1) * (y1 - y0) * 0.4
            lines.append(Line(" ".join(text.split()), x0, max(x1, last_x1), y0, y1))
        return lines

    def read_words(self) -> list[Word]:
        """Return the words in the order of the file. Empty if there are more than `MAX_PAGE_WORDS`."""
        text = LEADER.sub(lambda match: " " * len(match.group()), self.text)
        spans = [match.span() for match in islice(_WORD.finditer(text), MAX_PAGE_WORDS + 1)]
        if len(spans) > MAX_PAGE_WORDS:
            return []
        x0, x1, y0, y1 = self._read_boxes([start for start, _ in spans])
        longer = [(n, end - 1 - (text[end - 1] in HYPHENS)) for n, (start, end) in enumerate(spans) if end - start > 1]
        rights = self._read_boxes([end for _, end in longer]).x1
        for (n, _), right in zip(longer, rights, strict=True):
            if right > x1[n]:
                x1[n] = right
        texts = [text[start:end] for start, end in spans]
        return list(map(Word._make, zip(texts, x0, x1, y0, y1, strict=True)))

    def _read_boxes(self, positions: Sequence[int]) -> Boxes:
        """Return the boxes of characters by their positions in the text."""
        if self._has_other_positions:
            positions = find_char_positions(self._handle, positions)
        boxes = read_char_boxes(self._handle, positions)
        return turn_boxes(boxes, self._turn) if self._turn else boxes

    def _find_turn(self) -> int:
        """Return the number of clockwise quarter turns of most text, from a sample of ten characters."""
        step = max(1, len(self.text) // 10)
        turns = list[int]()
        for position in range(step // 2, len(self.text), step):
            if not self.text[position].isspace():
                angle = read_angle(self._handle, position)
                turns.append(round(angle / 1.5708) % 4)
        return max(set(turns), key=turns.count) if turns else 0

    def has_wide_gap(self, number: int) -> bool:
        """Return whether a line that `read_lines` returned has a space that is wider than between words."""
        start, end = self._spans[number]
        spans = [match.span() for match in _WORD.finditer(self.text, start, end)]
        first = self._read_boxes([start for start, _ in spans])
        last = self._read_boxes([end - 1 for _, end in spans[:-1]])
        for right, left, y0, y1 in zip(last.x1, first.x0[1:], first.y0, first.y1, strict=False):
            if (limit := MIN_WIDE_GAP * (y1 - y0)) and left - right > limit:
                return True
        return False

    def read_rulings(self) -> list[Ruling]:
        """Return the drawn lines and the edges of drawn rectangles. Empty if there are too many objects or lines."""
        rulings = list[Ruling]()
        for box in iter_path_boxes(self._raw, get_address(self._page.raw), MAX_PAGE_OBJECTS):
            rulings.extend(_box_rulings(*(turn_box(box, self._turn) if self._turn else box)))
            if len(rulings) > MAX_RULINGS:
                return []
        return rulings


def _box_rulings(x0: float, x1: float, y0: float, y1: float) -> Iterator[Ruling]:
    """Yield a thin box as one drawn line, and another box as its four edges."""
    width, height = x1 - x0, y1 - y0
    if height <= MAX_RULING_POINTS:
        if width >= MIN_RULING_POINTS:
            middle = (y0 + y1) / 2
            yield Ruling(x0, x1, middle, middle)
    elif width <= MAX_RULING_POINTS:
        if height >= MIN_RULING_POINTS:
            middle = (x0 + x1) / 2
            yield Ruling(middle, middle, y0, y1)
    elif width >= MIN_RULING_POINTS and height >= MIN_RULING_POINTS:
        yield Ruling(x0, x1, y0, y0)
        yield Ruling(x0, x1, y1, y1)
        yield Ruling(x0, x0, y0, y1)
        yield Ruling(x1, x1, y0, y1)


def turn_box(box: BoxTuple, turn: int) -> BoxTuple:
    """Return the box on the page turned by `turn` quarter turns, so that text at that angle is upright."""
    x0, x1, y0, y1 = box
    match turn:
        case 1:
            return -y1, -y0, x0, x1
        case 2:
            return -x1, -x0, -y1, -y0
        case 3:
            return y0, y1, -x1, -x0
        case _:
            return box


def turn_boxes(boxes: Boxes, turn: int) -> Boxes:
    """Return the boxes turned as by `turn_box`."""
    turned = [turn_box(box, turn) for box in zip(*boxes, strict=True)]
    return Boxes(*(list(values) for values in zip(*turned, strict=True))) if turned else boxes


def _split_surrogates(text: str) -> str:
    """Return the text with one character per UTF-16 code unit, as pdfium counts them."""
    if text.isascii() or len(units := text.encode("utf-16-le", "surrogatepass")) == 2 * len(text):
        return text
    return "".join(map(chr, memoryview(units).cast("H")))


def join_surrogates(text: str) -> str:
    """Return the text with one character per code point."""
    return text if text.isascii() else text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
