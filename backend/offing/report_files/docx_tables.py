"""Tables as the XML of WordprocessingML.

The rows are built as XML, because python-docx searches the whole table for each cell.
"""

import unicodedata
from collections.abc import Sequence
from typing import Any

from docx.shared import RGBColor
from docx.text.paragraph import Paragraph

from offing.core.report_document import Part, TableBlock, TextPart
from offing.core.text_direction import is_right_to_left
from offing.report_files.docx_parts import add_parts, join_texts
from offing.report_files.docx_xml import make_element

MIN_COLUMN_CHARS, MAX_COLUMN_CHARS = 8, 60
"""A column is as wide as its longest cell, within these numbers of narrow letters."""


def add_table(file: Any, block: TableBlock, mark_color: RGBColor) -> None:
    """Append a table, whose header row is repeated on each page."""
    width = len(block.rows[0])
    table = file.add_table(rows=0, cols=width, style="Table Grid")
    if is_right_to_left(" ".join(join_texts(cell) for row in block.rows for cell in row)):
        table.table_direction = 1  # from right to left
    _set_widths(file, table, block)
    style_id = file.styles["Report Small Cell" if block.is_small else "Report Cell"].style_id
    for number, row in enumerate(block.rows):
        is_header = block.has_header and number == 0
        cells = [[_strengthen(part) for part in cell] for cell in row] if is_header else row
        _append_row(table, cells, style_id, mark_color, is_header=is_header, is_raised=not block.is_small)
    file.add_paragraph(style="Report Small Cell")  # or the next table would continue this one


def _set_widths(file: Any, table: Any, block: TableBlock) -> None:
    """Divide the width of the text. Programs that do not measure the cells would give each column the same."""
    section = file.sections[0]
    text_width = section.page_width - section.left_margin - section.right_margin
    columns = [[join_texts(cell) for cell in column] for column in zip(*block.rows, strict=True)]
    lengths = [max(map(_count_narrow_chars, column)) for column in columns]
    char_counts = [min(max(length, MIN_COLUMN_CHARS), MAX_COLUMN_CHARS) for length in lengths]
    for column, chars in zip(table.columns, char_counts, strict=True):
        column._gridCol.w = text_width * chars // sum(char_counts)


def _count_narrow_chars(text: str) -> int:
    """Return the length of a text in Latin letters. A Chinese character is as wide as two."""
    return sum(2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text)


def _append_row(
    table: Any,
    cells: Sequence[Sequence[Part]],
    style_id: str,
    mark_color: RGBColor,
    *,
    is_header: bool,
    is_raised: bool,
) -> None:
    row = make_element("w:tr")
    if is_header:
        properties = make_element("w:trPr")
        properties.append(make_element("w:tblHeader"))
        row.append(properties)
    for parts in cells:
        cell = make_element("w:tc")
        text = make_element("w:p")
        cell.append(make_element("w:tcPr"))
        cell.append(text)
        row.append(cell)
        text.style = style_id  # python-docx would search all styles for each cell
        add_parts(Paragraph(text, table), parts, mark_color, is_raised=is_raised)
    table._tbl.append(row)


def _strengthen(part: Part) -> Part:
    return part.model_copy(update={"is_strong": True}) if isinstance(part, TextPart) else part
