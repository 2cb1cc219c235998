"""Read lines, words and drawn lines of a page with pypdfium2.

To ask pdfium for the box of one character costs about as much as to extract fifty characters of text. So a page is
first read by the first and the last character of each line, and only a page that needs more is read by words.
"""

import ctypes
import re
from collections.abc import Callable, Iterator
from typing import Any

from offing.library.pdf.geometry import Line, Ruling, Word

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

HYPHENS = "\ufffe\x02"
"""The characters that pdfium writes for a hyphen at the end of a line."""

_LINE = re.compile(rf"[^\s{HYPHENS}](?:[^\r\n{HYPHENS}]*[^\s{HYPHENS}])?[ \t]*[{HYPHENS}]?")
_WORD = re.compile(rf"[^\s{HYPHENS}]+[{HYPHENS}]?")
_LEADER = re.compile(r"[._\-=\u2026]{4,}|(?:[.\u2026_][ \t]){3,}[.\u2026_]?")

ReadBox = Callable[[int], tuple[float, float, float, float]]


class PageReader:
    """Reads one page. Close it after use."""

    def __init__(self, document: Any, number: int) -> None:
        self._page: Any = document[number]
        self._text_page: Any = self._page.get_textpage()
        self.text = _split_surrogates(str(self._text_page.get_text_range()))

    def close(self) -> None:
        self._text_page.close()
        self._page.close()

    def read_lines(self) -> list[Line]:
        """Return the lines in the order of the file, with the boxes of upright text.

        A page whose text is turned by 90, 180 or 270 degrees is turned back.
        """
        read_box = self._box_reader()
        lines = list[Line]()
        for match in _LINE.finditer(self.text):
            start, text = match.start(), match.group()
            x0, x1, y0, y1 = read_box(start)
            if (end := start + len(text.rstrip(HYPHENS + " \t")) - 1) > start:
                last = read_box(end)
                if abs(last[2] - y0) > (y1 - y0):
                    last = (x0, x1 + (end - start) * (y1 - y0) * 0.4, y0, y1)
                x1 = max(x1, last[1])
            lines.append(Line(" ".join(text.split()), x0, x1, y0, y1))
        return lines

    def read_words(self) -> list[Word]:
        """Return the words in the order of the file. Empty if there are more than `MAX_PAGE_WORDS`."""
        read_box = self._box_reader()
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

    def _box_reader(self) -> ReadBox:
        """Return a function from a position in the text to a box `(x0, x1, y0, y1)`."""
        from pypdfium2 import raw

        handle, rect = self._text_page.raw, raw.FS_RECTF()
        pointer, get_box, get_index = ctypes.byref(rect), raw.FPDFText_GetLooseCharBox, None
        if len(self.text) != self._text_page.count_chars():
            get_index = raw.FPDFText_GetCharIndexFromTextIndex
        turn = self._find_turn()

        def read_box(position: int) -> tuple[float, float, float, float]:
            get_box(handle, get_index(handle, position) if get_index else position, pointer)
            box = rect.left, rect.right, rect.bottom, rect.top
            return turn_box(box, turn) if turn else box

        return read_box

    def _find_turn(self) -> int:
        """Return the number of quarter turns of most text, counterclockwise, from a sample of ten characters."""
        from pypdfium2 import raw

        step = max(1, len(self.text) // 10)
        turns = list[int]()
        for position in range(step // 2, len(self.text), step):
            if not self.text[position].isspace():
                angle = float(raw.FPDFText_GetCharAngle(self._text_page.raw, position))
                turns.append(round(angle / 1.5708) % 4)
        return max(set(turns), key=turns.count) if turns else 0

    def read_rulings(self) -> list[Ruling]:
        """Return the drawn lines and the edges of drawn rectangles. Empty if there are too many objects or lines."""
        from pypdfium2 import raw

        turn = self._find_turn()
        rulings = list[Ruling]()
        if raw.FPDFPage_CountObjects(self._page.raw) > MAX_PAGE_OBJECTS:
            return []
        for shape in self._page.get_objects(filter=[raw.FPDF_PAGEOBJ_PATH], max_depth=3):
            try:
                boxes = _path_boxes(raw, shape)
            except _pdfium_error():
                continue
            for box in boxes:
                rulings.extend(_box_rulings(*(turn_box(box, turn) if turn else box)))
            if len(rulings) > MAX_RULINGS:
                return []
        return rulings


def _pdfium_error() -> type[Exception]:
    import pypdfium2

    return pypdfium2.PdfiumError


def _path_boxes(raw: Any, shape: Any) -> Iterator[tuple[float, float, float, float]]:
    """Yield a box per straight part of a path, as `(x0, x1, y0, y1)`."""
    count = raw.FPDFPath_CountSegments(shape.raw)
    left, bottom, right, top = shape.get_bounds()
    is_thin = min(right - left, top - bottom) <= MAX_RULING_POINTS
    if count <= 5 or is_thin or count > 400:
        yield left, right, bottom, top
        return
    matrix, x, y = shape.get_matrix(), ctypes.c_float(), ctypes.c_float()
    start = before = (0.0, 0.0)
    for number in range(count):
        segment = raw.FPDFPath_GetPathSegment(shape.raw, number)
        raw.FPDFPathSegment_GetPoint(segment, x, y)
        point = matrix.on_point(x.value, y.value)
        kind = raw.FPDFPathSegment_GetType(segment)
        if kind == raw.FPDF_SEGMENT_LINETO:
            yield _line_box(before, point)
        if raw.FPDFPathSegment_GetClose(segment):
            yield _line_box(point, start)
        if kind == raw.FPDF_SEGMENT_MOVETO:
            start = point
        before = point


def _line_box(start: tuple[float, float], end: tuple[float, float]) -> tuple[float, float, float, float]:
    return min(start[0], end[0]), max(start[0], end[0]), min(start[1], end[1]), max(start[1], end[1])


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


def turn_box(box: tuple[float, float, float, float], turn: int) -> tuple[float, float, float, float]:
    """Return the box on the page turned clockwise by `turn` quarter turns, so that text at that angle is upright."""
    x0, x1, y0, y1 = box
    match turn:
        case 1:
            return y0, y1, -x1, -x0
        case 2:
            return -x1, -x0, -y1, -y0
        case 3:
            return -y1, -y0, x0, x1
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
