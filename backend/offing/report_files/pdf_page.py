"""The pages of a PDF file: where the next line stands, and how it is drawn."""

import io
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache

from fpdf import FPDF
from fpdf.enums import TextDirection

from offing.report_files.pdf_fonts import PdfFonts
from offing.report_files.pdf_lines import Line, Paragraph, StyledText, TextRun, TextStyle

PAGE_WIDTH, PAGE_HEIGHT = 210.0, 297.0
MARGIN = 22.0
"""Empty space around the text in millimeters."""
BOTTOM = PAGE_HEIGHT - MARGIN
TEXT_WIDTH = PAGE_WIDTH - 2 * MARGIN
LINE_SPACING = 1.42
"""Height of a line by the size of its text."""
MILLIMETERS_PER_POINT = 25.4 / 72
RAISED_SIZE, RAISED_BY = 0.7, 0.32
"""Size of raised numbers, and how much higher they are, as fractions of the size of the text."""
BASELINE = 0.8
"""Where fpdf2 puts the baseline of a cell that is as high as its text, as a fraction of it."""
MEASURED_RUNS = 200_000
"""Maximum number of runs whose widths are kept."""
FOOTER = TextStyle(8.5, (91, 100, 117))


class PageFile(FPDF):
    """A file whose pages have numbers at the bottom."""

    pages_drawn: "Pages | None" = None

    def footer(self) -> None:
        if self.pages_drawn:
            self.pages_drawn.draw_page_number(self.page_no())


class Pages:
    """Draws lines from top to bottom and begins a new page when one is full."""

    def __init__(self, pdf: PageFile, fonts: PdfFonts) -> None:
        self._pdf, self._fonts = pdf, fonts
        self.y = MARGIN
        """Distance of the next line from the top of the page in millimeters."""
        self._measure_cached = lru_cache(MEASURED_RUNS)(self._measure_run)
        pdf.pages_drawn = self
        pdf.add_page()

    def add_page(self) -> None:
        self._pdf.add_page()
        self.y = MARGIN

    def reserve(self, height: float) -> None:
        """Begin a new page if this one has less than `height` millimeters left, unless nothing is on it."""
        if self.y + height > BOTTOM and self.y > MARGIN:
            self.add_page()

    def lay_out(self, parts: Sequence[StyledText]) -> Paragraph:
        return Paragraph(parts, self._fonts.choose_families, self._measure)

    def draw_lines(self, lines: Iterable[Line], left: float, width: float, *, bar: bool = False) -> None:
        """Draw lines under each other. With `bar`, a line stands before them, as before a quote."""
        for line in lines:
            self.reserve(line_height(line))
            if bar:
                self._draw_bar(left + width + 2 if line.is_rtl else left - 2, line_height(line))
            self.draw_line(line, left, width, self.y)
            self.y += line_height(line)

    def draw_line(self, line: Line, left: float, width: float, top: float) -> None:
        """Draw a line at a distance from the top of the page. It begins at the side where its direction begins."""
        x = left + width - line.width if line.is_rtl else left
        size = line.size * MILLIMETERS_PER_POINT
        baseline = top + (line_height(line) - size) / 2 + BASELINE * size
        for run in line.runs:
            self._draw_run(run, x, baseline)
            x += run.width

    def draw_page_number(self, number: int) -> None:
        for line in self.lay_out([StyledText(str(number), FOOTER)]).break_lines(TEXT_WIDTH):
            self.draw_line(line, (PAGE_WIDTH - line.width) / 2, line.width, PAGE_HEIGHT - MARGIN / 1.6)

    def begin_section(self, name: str, level: int) -> None:
        """Add an entry to the outline that leads here."""
        self._pdf.set_xy(MARGIN, self.y)
        self._pdf.start_section(name, level, strict=False)

    def add_link(self) -> int:
        """Return a new place to link to. It is nowhere until `set_link` is called."""
        return self._pdf.add_link()

    def set_link(self, link: int) -> None:
        """Let a link lead here."""
        self._pdf.set_link(link, y=self.y, page=self._pdf.page_no())

    def draw_box(self, left: float, top: float, width: float, height: float, *, is_filled: bool) -> None:
        self._pdf.set_draw_color(201, 211, 224)
        self._pdf.set_fill_color(238, 242, 247)
        self._pdf.set_line_width(0.2)
        self._pdf.rect(left, top, width, height, "DF" if is_filled else "D")

    def draw_image(self, data: bytes, name: str, width: float, height: float) -> None:
        """Draw an image of this size in millimeters. Raises `OSError` or `ValueError` for a damaged one."""
        self.reserve(height)
        self._pdf.image(io.BytesIO(data), MARGIN, self.y, width, height, alt_text=name)
        self.y += height

    def _draw_bar(self, x: float, height: float) -> None:
        self._pdf.set_draw_color(201, 211, 224)
        self._pdf.set_line_width(0.6)
        self._pdf.line(x, self.y, x, self.y + height)

    def _draw_run(self, run: TextRun, x: float, baseline: float) -> None:
        raised_by = RAISED_BY * run.style.size * MILLIMETERS_PER_POINT if run.style.is_raised else 0.0
        size = self._set_font(run) * MILLIMETERS_PER_POINT
        self._pdf.set_text_color(*run.style.color)
        self._pdf.set_xy(x, baseline - raised_by - BASELINE * size)
        self._pdf.cell(run.width, size, run.text, link=run.link or "")

    def _set_font(self, run: TextRun) -> float:
        """Set the font and the direction of a run. Return the size in points."""
        style = run.style
        size = style.size * RAISED_SIZE if style.is_raised else style.size
        bold, slanted = style.is_bold, style.is_slanted
        family, form = self._fonts.find_style(run.family, run.text, is_bold=bold, is_slanted=slanted)
        self._pdf.set_font(family, form, size)
        direction = TextDirection.RTL if run.is_rtl else TextDirection.LTR
        self._pdf.set_text_shaping(True, direction=direction)
        return size

    def _measure(self, run: TextRun) -> float:
        return self._measure_cached(replace(run, link=None, width=0.0))

    def _measure_run(self, run: TextRun) -> float:
        self._set_font(run)
        return self._pdf.get_string_width(run.text)


def line_height(line: Line) -> float:
    """Return the height of a line in millimeters."""
    return line.size * MILLIMETERS_PER_POINT * LINE_SPACING
