"""Tables as the XML of WordprocessingML.

The rows are built as XML, because python-docx searches the whole table for each cell.
"""

import unicodedata
from collections.abc import Sequence
from typing import Any

from docx.shared import RGBColor, Twips
from docx.text.paragraph import Paragraph

from offing.core.report_document import Part, TableBlock, TextPart
from offing.core.text_direction import is_right_to_left
from offing.report_files.column_widths import divide_width
from offing.report_files.docx_parts import add_parts, join_texts
from offing.report_files.docx_xml import make_element

BORDER_COLOR, HEADER_COLOR = "C9D3E0", "EEF2F7"
BORDERS = ("w:top", "w:left", "w:bottom", "w:right", "w:insideH", "w:insideV")
MARGINS = {"w:top": 45, "w:left": 85, "w:bottom": 45, "w:right": 85}
"""Empty space around the text of a cell in twentieths of a point."""
LETTER_WIDTH, WORD_LETTER_WIDTH = 0.6, 0.72
"""Width of a narrow letter as a fraction of the size of the text, in lines and in single words of a wide font."""
MAX_WORD_SHARE = 0.3
"""Part of the width of the page that the longest word of a column may ask for."""
MAX_UNBROKEN_CHARS = 600
"""Narrow letters in a cell above which its row may be divided between two pages."""


def add_table(file: Any, block: TableBlock, mark_color: RGBColor) -> None:
    """Append a table, whose header row is repeated on each page."""
    width = len(block.rows[0])
    table = file.add_table(rows=0, cols=width, style="Table Grid")
    is_rtl = is_right_to_left(" ".join(join_texts(cell) for row in block.rows for cell in row))
    if is_rtl:
        table.table_direction = 1  # from right to left
    _set_look(table)
    style = file.styles["Report Small Cell" if block.is_small else "Report Cell"]
    _set_widths(file, table, block, style.font.size, is_rtl=is_rtl)
    for number, row in enumerate(block.rows):
        is_header = block.has_header and number == 0
        cells = [[_strengthen(part) for part in cell] for cell in row] if is_header else row
        added = make_element("w:tr")
        added.append(_make_row_properties(cells, is_header=is_header))
        for parts in cells:
            cell, text = _make_cell(style.style_id, is_header=is_header)
            added.append(cell)
            add_parts(Paragraph(text, table), parts, mark_color, is_raised=not block.is_small, is_rtl=is_rtl)
        table._tbl.append(added)
    file.add_paragraph(style="Report Small Cell")  # or the next table would continue this one


def _set_look(table: Any) -> None:
    """Draw gray lines, and leave room around the text of each cell."""
    borders, margins = make_element("w:tblBorders"), make_element("w:tblCellMar")
    line = {"w:val": "single", "w:sz": "4", "w:space": "0", "w:color": BORDER_COLOR}
    borders.extend(make_element(side, line) for side in BORDERS)
    margins.extend(make_element(side, {"w:w": str(width), "w:type": "dxa"}) for side, width in MARGINS.items())
    properties = table._tbl.tblPr
    properties.insert_element_before(borders, "w:shd", "w:tblLayout", "w:tblCellMar", "w:tblLook")
    properties.insert_element_before(margins, "w:tblLook")


def _set_widths(file: Any, table: Any, block: TableBlock, size: Any, *, is_rtl: bool) -> None:
    """Divide the width of the page. Programs that do not measure the cells would give each column the same."""
    section = file.sections[0]
    available = section.page_width - section.left_margin - section.right_margin
    space = Twips(MARGINS["w:left"] + MARGINS["w:right"])
    columns = [[join_texts(cell) for cell in column] for column in zip(*block.rows, strict=True)]
    lengths = [[_count_narrow_chars(text) * size * LETTER_WIDTH for text in column] for column in columns]
    words = [max(map(_count_longest_word, column)) * size * WORD_LETTER_WIDTH for column in columns]
    least = [min(word, available * MAX_WORD_SHARE) + space for word in words]
    most = [
        max(narrowest, *(length + space for length in column)) for narrowest, column in zip(least, lengths, strict=True)
    ]
    widths = divide_width(least, most, list(map(sum, lengths)), available)
    factor = available / sum(widths) if is_rtl else 1  # a narrow table would be at the other margin in some programs
    for column, width in zip(table.columns, widths, strict=True):
        column._gridCol.w = int(width * factor)


def _count_longest_word(text: str) -> int:
    """Return the length of the longest piece that stays on one line. Chinese may be broken after each character."""
    apart = "".join(f" {char} " if _is_wide(char) else char for char in text)
    return max(map(_count_narrow_chars, apart.split()), default=0)


def _count_narrow_chars(text: str) -> int:
    """Return the length of a text in Latin letters. A Chinese character is as wide as two."""
    return sum(2 if _is_wide(char) else 1 for char in text)


def _is_wide(char: str) -> bool:
    return unicodedata.east_asian_width(char) in "WF"


def _make_row_properties(cells: Sequence[Sequence[Part]], *, is_header: bool) -> Any:
    properties = make_element("w:trPr")
    if max(_count_narrow_chars(join_texts(cell)) for cell in cells) <= MAX_UNBROKEN_CHARS:
        properties.append(make_element("w:cantSplit"))
    if is_header:
        properties.append(make_element("w:tblHeader"))
    return properties


def _make_cell(style_id: str, *, is_header: bool) -> tuple[Any, Any]:
    """Return a cell, and the paragraph in it."""
    cell, properties, text = make_element("w:tc"), make_element("w:tcPr"), make_element("w:p")
    if is_header:
        shading = {"w:val": "clear", "w:color": "auto", "w:fill": HEADER_COLOR}
        properties.append(make_element("w:shd", shading))
    cell.extend((properties, text))
    text.style = style_id  # python-docx would search all styles for each cell
    return cell, text


def _strengthen(part: Part) -> Part:
    return part.model_copy(update={"is_strong": True}) if isinstance(part, TextPart) else part
