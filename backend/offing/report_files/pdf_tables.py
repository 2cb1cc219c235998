"""Tables of a PDF file. Their header is repeated on each page, and a row that is higher than a page is divided."""

from collections.abc import Sequence

from offing.report_files.column_widths import divide_width
from offing.report_files.pdf_lines import Line, Paragraph
from offing.report_files.pdf_page import BOTTOM, MARGIN, TEXT_WIDTH, Pages, line_height

PADDING = 1.4
"""Empty space around the text of a cell in millimeters."""
MAX_WORD_SHARE = 0.3
"""Part of the width of the page that the widest word of a column may ask for."""

CellLines = list[list[Line]]
"""The lines of each cell of a row."""


def draw_table(pages: Pages, rows: Sequence[Sequence[Paragraph]], *, has_header: bool, is_rtl: bool) -> None:
    """Draw a table. If `is_rtl` is set, its first column is on the right."""
    widths = choose_widths(rows)
    ordered = [row[::-1] if is_rtl else row for row in rows]
    widths = widths[::-1] if is_rtl else widths
    cells = [_break_cells(row, widths) for row in ordered]
    left = MARGIN + TEXT_WIDTH - sum(widths) if is_rtl else MARGIN
    header = cells[0] if has_header else None
    for number, row in enumerate(cells):
        is_header = header is not None and number == 0
        if is_header:
            pages.reserve(_row_height(row) + (_row_height(cells[1]) if len(cells) > 1 else 0))
        _draw_row(pages, row, widths, left, header=None if is_header else header, is_header=is_header)


def _break_cells(row: Sequence[Paragraph], widths: Sequence[float]) -> CellLines:
    return [cell.break_lines(max(width - 2 * PADDING, 1.0)) for cell, width in zip(row, widths, strict=True)]


def choose_widths(rows: Sequence[Sequence[Paragraph]]) -> list[float]:
    """Return the widths of the columns in millimeters."""
    extremes = [[cell.measure_extremes() for cell in column] for column in zip(*rows, strict=True)]
    space = 2 * PADDING + 0.5
    least = [min(max(word for word, _ in column), TEXT_WIDTH * MAX_WORD_SHARE) + space for column in extremes]
    most = [max(whole for _, whole in column) + space for column in extremes]
    totals = [sum(whole for _, whole in column) for column in extremes]
    return divide_width(least, most, totals, TEXT_WIDTH)


def _draw_row(
    pages: Pages, row: CellLines, widths: Sequence[float], left: float, *, header: CellLines | None, is_header: bool
) -> None:
    """Draw a row, on a new page below `header` if it does not fit."""
    rest = row
    while True:
        fits = pages.y + _row_height(rest) <= BOTTOM
        taken = rest if fits else _take_lines(rest, BOTTOM - pages.y)
        is_short = _row_height(rest) <= (BOTTOM - MARGIN) / 3
        if fits or (any(taken) and not is_short) or pages.y <= MARGIN:
            taken = taken if any(taken) else [lines[:1] for lines in rest]
            _draw_cells(pages, taken, widths, left, is_filled=is_header)
            rest = [lines[len(drawn) :] for lines, drawn in zip(rest, taken, strict=True)]
            if not any(rest):
                return
        pages.add_page()
        if header is not None and _row_height(header) < (BOTTOM - MARGIN) / 3:
            _draw_cells(pages, header, widths, left, is_filled=True)


def _take_lines(row: CellLines, height: float) -> CellLines:
    """Return the first lines of each cell that fit in a height."""
    return [_take_cell_lines(lines, height - 2 * PADDING) for lines in row]


def _take_cell_lines(lines: list[Line], height: float) -> list[Line]:
    used, count = 0.0, 0
    for line in lines:
        used += line_height(line)
        if used > height:
            break
        count += 1
    return lines[:count]


def _row_height(row: CellLines) -> float:
    return max(sum(map(line_height, lines)) for lines in row) + 2 * PADDING


def _draw_cells(pages: Pages, row: CellLines, widths: Sequence[float], left: float, *, is_filled: bool) -> None:
    height, x = _row_height(row), left
    for lines, width in zip(row, widths, strict=True):
        pages.draw_box(x, pages.y, width, height, is_filled=is_filled)
        top = pages.y + PADDING
        for line in lines:
            pages.draw_line(line, x + PADDING, width - 2 * PADDING, top)
            top += line_height(line)
        x += width
    pages.y += height
