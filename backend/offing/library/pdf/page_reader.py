"""Read lines, words and drawn lines of a page with pypdfium2.

To ask pdfium for the box of one character costs about as much as to extract fifty characters of text. So a page is
first read by the first and the last character of each line, and only a page that needs more is read by words.
"""

import ctypes
import re
from collections.abc import Callable, Iterator
from typing import Any

from offing.library.pdf.geometry import Line, Ruling, Word
from offing.library.pdf.paths import BoxTuple, iter_path_boxes

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
_LEADER = re.compile(r"[._\-=\u2026]{4,}|(?:[.\u2026_][ \t]){3,}[.\u2026_]?")

ReadBox = Callable[[int], BoxTuple]


class PageReader:
    """Reads one page. Close it after use."""

    def __init__(self, document: Any, number: int) -> None:
        from pypdfium2 import raw

        self._raw: Any = raw
        self._page: Any = document[number]
        self._text_page: Any = self._page.get_textpage()
        self.text = _split_surrogates(str(self._text_page.get_text_range()))
        self._turn = self._find_turn()
        self._read_box = self._make_box_reader()
        self._spans = list[tuple[int, int]]()

    def close(self) -> None:
        self._text_page.close()
        self._page.close()

    def read_lines(self) -> list[Line]:
        """Return the lines in the order of the file, with the boxes of upright text.

        A page whose text is turned by 90, 180 or 270 degrees is turned back.
        """
        read_box = self._read_box
        lines = list[Line]()
        for match in _LINE.finditer(self.text):
            start, text = match.start(), match.group()
            x0, x1, y0, y1 = read_box(start)
            end = start + len(text.rstrip(HYPHENS + " \t")) - 1
            if end > start:
                last = read_box(end)
                if abs(last[2] - y0) > (y1 - y0):
                    last = (x0, x1 + (end - start) * (y1 - y0) * 0.4, y0, y1)
                x1 = max(x1, last[1])
            self._spans.append((start, end + 1))
            lines.append(Line(" ".join(text.split()), x0, x1, y0, y1))
        return lines

    def read_words(self) -> list[Word]:
        """Return the words in the order of the file. Empty if there are more than `MAX_PAGE_WORDS`."""
        read_box = self._read_box
        text = _LEADER.sub(lambda match: " " * len(match.group()), self.text)
        words = list[Word]()
        for match in _WORD.finditer(text):
            word = match.group()
            start, end = match.start(), match.end() - 1 - (word[-1] in HYPHENS)
            x0, x1, y0, y1 = read_box(start)
            if end > start:
                x1 = max(x1, read_box(end)[1])
            words.append(Word(word, x0, x1, y0, y1))
            if len(words) > MAX_PAGE_WORDS:
                return []
        return words

    def _make_box_reader(self) -> ReadBox:
        """Return a function from a position in the text to a box `(x0, x1, y0, y1)`."""
        raw, handle = self._raw, self._text_page.raw
        rect = raw.FS_RECTF()
        pointer, get_box, get_index = ctypes.byref(rect), raw.FPDFText_GetLooseCharBox, None
        if len(self.text) != self._text_page.count_chars():
            get_index = raw.FPDFText_GetCharIndexFromTextIndex
        turn = self._turn

        def read_box(position: int) -> BoxTuple:
            get_box(handle, get_index(handle, position) if get_index else position, pointer)
            box = rect.left, rect.right, rect.bottom, rect.top
            return turn_box(box, turn) if turn else box

        return read_box

    def _find_turn(self) -> int:
        """Return the number of clockwise quarter turns of most text, from a sample of ten characters."""
        step = max(1, len(self.text) // 10)
        turns = list[int]()
        for position in range(step // 2, len(self.text), step):
            if not self.text[position].isspace():
                angle = float(self._raw.FPDFText_GetCharAngle(self._text_page.raw, position))
                turns.append(round(angle / 1.5708) % 4)
        return max(set(turns), key=turns.count) if turns else 0

    def has_wide_gap(self, number: int) -> bool:
        """Return whether a line that `read_lines` returned has a space that is wider than between words."""
        read_box = self._read_box
        start, end = self._spans[number]
        right = limit = 0.0
        for match in _WORD.finditer(self.text, start, end):
            x0, _, y0, y1 = read_box(match.start())
            if limit and x0 - right > limit:
                return True
            right, limit = read_box(match.end() - 1)[1], MIN_WIDE_GAP * (y1 - y0)
        return False

    def read_rulings(self) -> list[Ruling]:
        """Return the drawn lines and the edges of drawn rectangles. Empty if there are too many objects or lines."""
        rulings = list[Ruling]()
        for box in iter_path_boxes(self._raw, self._page.raw, MAX_PAGE_OBJECTS):
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


def _split_surrogates(text: str) -> str:
    """Return the text with one character per UTF-16 code unit, as pdfium counts them."""
    if text.isascii() or max(text) <= "\uffff":
        return text
    units = memoryview(text.encode("utf-16-le", "surrogatepass")).cast("H")
    return "".join(map(chr, units))


def join_surrogates(text: str) -> str:
    """Return the text with one character per code point."""
    return text if text.isascii() else text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
