"""Tables of web pages as Markdown: which tables hold data, and their cells in rows of one length.

A cell that spans rows is repeated in each of them, so that a row can be read alone. Rows of headings are joined
into one. Tables that only arrange a page have no rows; their cells are ordinary text.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

MAX_CELL_CHARS = 300
"""Maximum code points of a cell of a table without headings. A longer one shows that the table arranges a page."""
MAX_HEADED_CELL_CHARS = 2_000
"""The same for a table with headings or a caption."""
MAX_REPEATED_CHARS = 80
"""Maximum code points of a cell that is repeated in the rows and columns that it spans. A longer one is written once.
"""
MAX_HEADER_ROWS = 3
"""Maximum number of rows that are joined into the header row."""
MAX_TITLE_ROWS = 3
"""Maximum number of captions, and first rows of one cell, that are written before a table."""
MAX_SPARE_CELLS = 1_000
"""Number of cells that a table may gain by spans and padding, in addition to four per cell of the page."""

HEADINGS = frozenset(("h1", "h2", "h3", "h4", "h5", "h6"))
_PARTS = frozenset(("p", "li", "div", "pre", "blockquote", "form", "iframe"))
_HEADED = frozenset(("caption", "th", "thead"))
_DIGITS = re.compile(r"\d{1,4}")


@dataclass(slots=True)
class _TableShape:
    """What decides whether a table holds data."""

    is_layout: bool
    cells: list[int] = field(default_factory=list[int])
    """Number of cells of each row."""
    is_headed: bool = False
    longest: int = 0
    """Code points of the longest cell."""
    parts: int = 0
    """Paragraphs, list items and the like in the present cell."""
    has_parts: bool = False
    """Whether a cell has several of them."""
    length: int = 0

    def end_cell(self) -> None:
        self.longest, self.has_parts = max(self.longest, self.length), self.has_parts or self.parts > 1
        self.length = self.parts = 0

    def has_data(self) -> bool:
        if self.is_layout or not self.cells or max(self.cells) < 2:
            return False
        if self.is_headed:
            return self.longest <= MAX_HEADED_CELL_CHARS
        return len(self.cells) > 1 and self.longest <= MAX_CELL_CHARS and not self.has_parts


def find_data_tables(root: Any) -> frozenset[Any]:
    """Return the tables inside an element that hold data, in one walk: no other table inside, and two columns."""
    if next(root.iter("table"), None) is None:
        return frozenset()
    tables, stack = dict[Any, _TableShape](), list[Any]()
    walk: Any = import_module("lxml.etree").iterwalk(root, events=("start", "end"))
    for event, element in walk:
        if event == "start" and element.tag == "table":
            if stack:
                tables[stack[-1]].is_layout = True
            stack.append(element)
            tables[element] = _TableShape(element.get("role") in ("presentation", "none"))
        elif stack and event == "start":
            _note_start(tables[stack[-1]], element)
        elif stack and element.tag == "table":
            stack.pop()
        elif stack and element.tag in ("td", "th"):
            tables[stack[-1]].end_cell()
        if stack and event == "end":
            tables[stack[-1]].length += len((element.tail or "").strip())
    return frozenset(element for element, shape in tables.items() if shape.has_data())


def _note_start(shape: _TableShape, element: Any) -> None:
    tag = element.tag
    if tag == "tr":
        shape.cells.append(0)
    elif tag in ("td", "th") and shape.cells:
        shape.cells[-1] += 1
    shape.length += len((element.text or "").strip())
    shape.is_headed = shape.is_headed or tag in _HEADED
    shape.is_layout = shape.is_layout or (tag in HEADINGS and element.getparent().tag not in ("th", "caption"))
    shape.parts += tag in _PARTS


@dataclass(frozen=True, slots=True)
class TableCell:
    text: str
    is_heading: bool = False
    columns: int = 1
    """Number of columns that it spans."""
    rows: int = 1
    """Number of rows that it spans. 0 means all that follow."""


def parse_span(value: str | None) -> int:
    """Return the number in a `colspan` or `rowspan` attribute. 1 if there is none."""
    digits = _DIGITS.match((value or "").strip()[:8])
    return int(digits.group()) if digits else 1


def render_table(rows: Sequence[Sequence[TableCell]], heading_rows: int, caption: str = "") -> str:
    """Return a table as Markdown, after a line with its caption. Empty if it has no text.

    `heading_rows` is the number of rows in the table's head. 0 means that the cells show what the headings are.
    """
    grid = _drop_empty_columns(_resolve_spans(rows))
    leading = max(heading_rows, _count_heading_rows(rows))
    rest = [(number, row) for number, row in enumerate(grid) if any(row)]
    titles = [caption] if caption else []
    while len(rest) > 1 and len(titles) < MAX_TITLE_ROWS and _is_title_row(rest[0][1]):
        titles.append(rest.pop(0)[1][0])
    if not rest:
        return "\n\n".join(titles)
    head = [row for number, row in rest if number < leading][:MAX_HEADER_ROWS]
    body = [row for _, row in rest][len(head) :]
    if not body:
        head, body = head[:1], head[1:]
    if not head and not _has_row_headings(rows):
        head, body = body[:1], body[1:]
    header = _join_rows(head) if head else [""] * len(body[0])
    lines = [_render_row(header), f"|{' --- |' * len(header)}", *map(_render_row, body)]
    return "\n\n".join([*titles, "\n".join(lines)])


def _resolve_spans(rows: Sequence[Sequence[TableCell]]) -> list[list[str]]:
    """Return the texts of all rows with cells repeated where they span rows or columns, padded to one length.

    The number of additional cells is limited in proportion to the cells of the page.
    """
    count = sum(map(len, rows))
    spare = 4 * count + MAX_SPARE_CELLS
    widest = max(map(len, rows), default=0)
    pending = dict[int, tuple[str, int]]()
    grid = list[list[str]]()
    for row in rows:
        line = list[str]()
        for cell in row:
            spare -= _take_pending(line, pending, spare)
            columns = max(1, min(cell.columns, widest, 1 + spare))
            spare -= columns - 1
            again = "" if len(cell.text) > MAX_REPEATED_CHARS or columns >= widest else cell.text
            texts = [cell.text] + [again] * (columns - 1)
            if cell.rows != 1:
                below = cell.text if len(cell.text) <= MAX_REPEATED_CHARS else ""
                pending |= {len(line) + at: (below, cell.rows - 1) for at in range(columns)}
            line += texts
        spare -= _take_pending(line, pending, spare)
        grid.append(line)
    width = max(map(len, grid), default=0)
    if width * len(grid) - sum(map(len, grid)) > 4 * count + MAX_SPARE_CELLS:
        return grid
    return [line + [""] * (width - len(line)) for line in grid]


def _take_pending(line: list[str], pending: dict[int, tuple[str, int]], spare: int) -> int:
    """Append the cells that span from rows above to here, and return their number."""
    taken = 0
    while taken < spare and len(line) in pending:
        text, rows = pending.pop(len(line))
        if rows != 1:
            pending[len(line)] = (text, rows - 1)
        line.append(text)
        taken += 1
    return taken


def _drop_empty_columns(grid: list[list[str]]) -> list[list[str]]:
    width = max(map(len, grid), default=0)
    used = sorted({at for line in grid for at, text in enumerate(line) if text})
    if len(used) == width or len(grid) * len(used) > _count_cells(grid):
        return grid
    return [[line[at] for at in used if at < len(line)] for line in grid]


def _count_cells(grid: Sequence[Sequence[str]]) -> int:
    return sum(map(len, grid))


def _count_heading_rows(rows: Sequence[Sequence[TableCell]]) -> int:
    """Return the number of rows at the beginning whose cells with text are all headings."""
    count = 0
    for row in rows:
        if not all(cell.is_heading or not cell.text for cell in row):
            break
        count += 1
    return count


def _has_row_headings(rows: Sequence[Sequence[TableCell]]) -> bool:
    return any(row and row[0].is_heading for row in rows)


def _is_title_row(row: Sequence[str]) -> bool:
    """Return whether a row consists of one cell over its whole length."""
    return bool(row[0]) and len(row) > 1 and not any(row[1:])


def _join_rows(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return one row with the different texts of each column, the upper one first."""
    width = max(map(len, rows))
    columns = ([row[at] for row in rows if at < len(row) and row[at]] for at in range(width))
    return [" / ".join(dict.fromkeys(texts)) for texts in columns]


def _render_row(row: Sequence[str]) -> str:
    return f"| {' | '.join(text.replace('|', chr(92) + '|') for text in row)} |"
