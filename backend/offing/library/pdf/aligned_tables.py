"""Find tables without drawn cells: rows whose chunks stand in columns, such as financial statements."""

import re
from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise

from offing.library.pdf.cells import join_cell_lines, join_header
from offing.library.pdf.geometry import Box, Element, Line, Ruling, Table
from offing.library.pdf.rows import Chunk, Row, is_year, row_as_line

MAX_LABEL_ROWS = 3
"""Maximum rows in succession without values inside a table."""
MAX_HEADER_ROWS = 6
MAX_TABLE_ROWS = 2_000
MAX_LABEL_WIDTH = 0.7
"""Maximum width of a row without values inside a table, as a share of the width of its column of text."""
MAX_ROW_GAP = 2.6
"""Maximum distance of the baselines of two rows of a table, in heights of a row."""
MIN_COLUMN_GAP = 0.12
"""Minimum width of the space between two columns, in heights of a row."""
MAX_TEXT_SHARE = 0.12
"""Maximum share of rows whose text reaches into the space between two columns."""
MAX_CONFLICT_SHARE = 0.12
"""Maximum share of rows with two separate chunks in one column. With more, the table is not certain."""
MIN_FILLED_SHARE = 0.5
"""Minimum share of cells with text in rows with values."""
MAX_OFF_CENTER = 0.12
"""Maximum distance of a header's center from the center of all values, as a share of their width."""

CAPTION = re.compile(r"(?:Table|Figure|Fig\.|Exhibit|Chart|Box)\s*\d[\d.]*\s*[.:|\u2013\u2014-]")
"""Matches the start of a caption."""
_SOURCE = re.compile(r"(?:Sources?|Notes?)\b\s*[:.\u2014-]", re.I)
_UNIT = re.compile(r"[(\[].*[)\]]$|(?:in )?(?:thousands|millions|billions)", re.I)


def find_aligned_tables(rows: Sequence[Row], box: Box, rulings: Sequence[Ruling] = ()) -> list[Element]:
    """Return the rows of a column of text from top to bottom, with rows that form tables as tables.

    Rows that may be a table but do not stand in certain columns become lines, with two spaces between chunks.
    """
    elements, at = list[Element](), 0
    while at < len(rows):
        start, end = _find_region(rows, at, box)
        elements.extend(row_as_line(row) for row in rows[at:start])
        elements.extend(_read_region(rows[start:end], rulings))
        at = end
    return elements


def _find_region(rows: Sequence[Row], at: int, box: Box) -> tuple[int, int]:
    """Return the next range of rows that may be a table. It starts and ends at `len(rows)` if there is none."""
    first = at
    while first < len(rows) and not _has_columns(rows[first]):
        first += 1
    start = first
    while start > at and first - start < MAX_HEADER_ROWS and first < len(rows):
        if not _is_label(rows[start - 1], box) or _is_apart(rows[start - 1], rows[start]):
            break
        start -= 1
    end, last = first, first
    while end < len(rows) and end - start < MAX_TABLE_ROWS:
        if end > first and (_is_apart(rows[end - 1], rows[end]) or _SOURCE.match(rows[end].text)):
            break
        if _has_columns(rows[end]):
            last = end + 1
        elif end - last >= MAX_LABEL_ROWS or not _is_label(rows[end], box):
            break
        end += 1
    if last < len(rows) and last > first and rows[last].text[:1].islower() and last < end:
        last += 1
    return start, max(last, first)


def _has_columns(row: Row) -> bool:
    return len(row.chunks) > 1 and (len(row.chunks) > 2 or row.chunks[1].is_value or row.chunks[1].words <= 8)


def _is_label(row: Row, box: Box) -> bool:
    return len(row.chunks) == 1 and row.x1 - row.x0 <= MAX_LABEL_WIDTH * (box.x1 - box.x0)


def _is_apart(above: Row, below: Row) -> bool:
    return above.y0 - below.y0 > MAX_ROW_GAP * max(above.height, below.height)


def _is_data(row: Row) -> bool:
    """Return whether a row has a label or number, and a number that is no year to the right of it."""
    return any(chunk.is_value and not is_year(chunk.text) for chunk in row.chunks[1:])


def _read_region(rows: Sequence[Row], rulings: Sequence[Ruling]) -> list[Element]:
    table = _read_table(rows, rulings) if len(rows) > 1 else None
    return table or [row_as_line(row) for row in rows]


def _read_table(rows: Sequence[Row], rulings: Sequence[Ruling]) -> list[Element] | None:
    """Return the lines above a table and the table, or `None` if the columns are not certain."""
    data = [row for row in rows if _is_data(row)]
    if len(data) < 2:
        data = [row for row in rows if len(row.chunks) > 1]
        if len(data) < 4 or not _is_text_table(data):
            return None
    bounds = _find_bounds(data)
    if not bounds:
        return None
    grid = [_assign_chunks(row, bounds) for row in rows]
    conflicts = sum(conflict for _, conflict in grid)
    if conflicts > MAX_CONFLICT_SHARE * len(data):
        return None
    cells = [texts for texts, _ in grid]
    first = next(n for n, row in enumerate(rows) if row is data[0])
    lines, head, body = _split_head(rows, cells, first, bounds, rulings)
    body_rows = _join_wrapped_labels(body + cells[first:])
    return _make_elements(lines, head, body_rows, rows, bounds)


def _is_text_table(rows: Sequence[Row]) -> bool:
    """Return whether the second chunks of rows without numbers start at one position."""
    starts = sorted(row.chunks[1].x0 for row in rows)
    middle = starts[len(starts) // 2]
    return sum(abs(start - middle) <= 3 for start in starts) >= 0.8 * len(starts)


def _find_bounds(rows: Sequence[Row]) -> list[float]:
    """Return the positions between columns, where no value and hardly any text stands."""
    height = sorted(row.height for row in rows)[len(rows) // 2]
    allowed = int(MAX_TEXT_SHARE * len(rows))
    events = list[tuple[float, int, bool]]()
    for row in rows:
        for number, chunk in enumerate(row.chunks):
            is_text = number == 0 and not chunk.is_value
            events.append((chunk.x0, 1, is_text))
            events.append((chunk.x1, -1, is_text))
    bounds, texts, values, free_from = list[float](), 0, 0, None
    for x, change, is_text in sorted(events):
        texts, values = texts + change * is_text, values + change * (not is_text)
        if values == 0 and texts <= allowed:
            free_from = x if free_from is None else free_from
        elif free_from is not None:
            if x - free_from >= MIN_COLUMN_GAP * height:
                bounds.append((free_from + x) / 2)
            free_from = None
    return bounds


def _assign_chunks(row: Row, bounds: Sequence[float]) -> tuple[tuple[str, ...], bool]:
    """Return the texts by column, and whether separate chunks came into the same column."""
    texts, conflict, ends = [""] * (len(bounds) + 1), False, [-1e9] * (len(bounds) + 1)
    for number, chunk in enumerate(row.chunks):
        at = chunk.x0 + 1 if number == 0 and not chunk.is_value else (chunk.x0 + chunk.x1) / 2
        column = bisect_left(bounds, at)
        conflict |= bool(texts[column]) and chunk.x0 - ends[column] > row.height
        texts[column] = join_cell_lines([texts[column], chunk.text])
        ends[column] = chunk.x1
    return tuple(texts), conflict


def _split_head(
    rows: Sequence[Row], cells: list[tuple[str, ...]], first: int, bounds: Sequence[float], rulings: Sequence[Ruling]
) -> tuple[list[Line], tuple[str, ...], list[tuple[str, ...]]]:
    """Return the lines above the header, the header, and the labels between header and first data row."""
    ends = _find_ends(rows[first:], bounds)
    heads = [n for n in range(first) if _is_header(rows[n], bounds, ends)]
    if not heads:
        return [row_as_line(row) for row in rows[:first]], (), []
    top, bottom = heads[0], heads[-1]
    while top and _UNIT.match(rows[top - 1].text) and rows[top - 1].x1 < bounds[0]:
        top -= 1
    head = [*rows[top : bottom + 1], None]
    spread = [_spread_header(row, below, bounds, ends, rulings) for row, below in pairwise(head) if row]
    labels = list(cells[bottom + 1 : first])
    return [row_as_line(row) for row in rows[:top]], join_header(spread), labels


def _is_header(row: Row, bounds: Sequence[float], ends: Sequence[tuple[float, float]]) -> bool:
    """Return whether a row above the data stands over columns of values."""
    if (len(row.chunks) == 1 and _UNIT.match(row.text)) or CAPTION.match(row.text):
        return False
    if len(row.chunks) > 1 or row.x0 >= bounds[0] - row.height:
        return True
    left, right = ends[1][0], ends[-1][1]
    is_centered = abs((row.x0 + row.x1) / 2 - (left + right) / 2) <= MAX_OFF_CENTER * (right - left)
    return is_centered and row.x0 >= bounds[0] - 3 * row.height and row.x0 > ends[0][1] - row.height


def _find_ends(rows: Sequence[Row], bounds: Sequence[float]) -> list[tuple[float, float]]:
    """Return the left and right end of the values of each column."""
    ends = [(1e9, -1e9) for _ in range(len(bounds) + 1)]
    for row in rows:
        if len(row.chunks) < 2:
            continue
        for chunk in row.chunks:
            column = bisect_left(bounds, (chunk.x0 + chunk.x1) / 2)
            ends[column] = min(ends[column][0], chunk.x0), max(ends[column][1], chunk.x1)
    return ends


def _spread_header(
    row: Row,
    below: Row | None,
    bounds: Sequence[float],
    ends: Sequence[tuple[float, float]],
    rulings: Sequence[Ruling],
) -> tuple[str, ...]:
    """Return the texts of a header's row by column. A chunk over several columns is in each of them.

    `below` is the next row of the header. `None` for the last row, in which each chunk is over its own column.
    """
    under = [r for r in rulings if below and below.y1 - 0.5 * row.height <= r.y0 <= row.y0 + 0.3 * row.height]
    texts = [""] * len(ends)
    for chunk in row.chunks:
        columns = list[int]()
        if below and chunk.x1 > bounds[0]:
            x0, x1 = _find_reach(chunk, row, bounds, ends, under)
            columns = [n for n, (a, b) in enumerate(ends) if n and x0 <= (a + b) / 2 <= x1]
        for column in columns or [bisect_left(bounds, (chunk.x0 + chunk.x1) / 2)]:
            texts[column] = join_cell_lines([texts[column], chunk.text])
    return tuple(texts)


def _find_reach(
    chunk: Chunk,
    row: Row,
    bounds: Sequence[float],
    ends: Sequence[tuple[float, float]],
    under: Sequence[Ruling],
) -> tuple[float, float]:
    """Return the left and right end of what a chunk of a header stands over.

    These are the ends of the line that is drawn under it, one of those `under` its row. Without one, a chunk that is
    alone over the middle of all values stands over all of them, and another one over half a column more than its width
    unless it is aligned with one column.
    """
    center, height = (chunk.x0 + chunk.x1) / 2, row.height
    pitch = (ends[-1][1] - bounds[0]) / len(bounds)
    for line in under:
        if bounds[0] - pitch <= line.x0 <= center <= line.x1:
            return line.x0, line.x1
    others = [c for c in row.chunks if c is not chunk and c.x1 > bounds[0]]
    if not others and abs(center - (ends[1][0] + ends[-1][1]) / 2) <= max(height, 0.15 * pitch * len(bounds)):
        return ends[1][0], ends[-1][1]
    if group := _find_group(chunk, [chunk, *others], ends):
        return group
    own = ends[bisect_left(bounds, center)]
    is_aligned = abs(center - sum(own) / 2) <= 0.6 * height or abs(chunk.x1 - own[1]) <= 0.6 * height
    if is_aligned and chunk.x1 - chunk.x0 <= pitch:
        return center, center
    half = (chunk.x1 - chunk.x0) / 2
    reach = min([0.75 * pitch, *(abs(center - (c.x0 + c.x1) / 2) / 2 - half for c in others)])
    return chunk.x0 - max(reach, 0), chunk.x1 + max(reach, 0)


def _find_group(
    chunk: Chunk, chunks: Sequence[Chunk], ends: Sequence[tuple[float, float]]
) -> tuple[float, float] | None:
    """Return the ends of the columns under a chunk, if each chunk of a row stands over the middle of as many."""
    count, values = len(chunks), ends[1:]
    if count >= len(values) or len(values) % count:
        return None
    size = len(values) // count
    groups = [(values[n * size][0], values[(n + 1) * size - 1][1]) for n in range(count)]
    middles = sorted((c.x0 + c.x1) / 2 for c in chunks)
    for (left, right), middle in zip(groups, middles, strict=True):
        if abs((left + right) / 2 - middle) > 0.3 * (right - left) / size + 6:
            return None
    return groups[middles.index((chunk.x0 + chunk.x1) / 2)]


def _join_wrapped_labels(rows: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Join a label that goes on in the next row, which starts with a small letter, with that row."""
    joined = list[tuple[str, ...]]()
    for row in rows:
        last = joined[-1] if joined else None
        if last and row[0][:1].islower() and (not any(row[1:]) or not any(last[1:])):
            label = join_cell_lines([last[0], row[0]])
            joined[-1] = (label, *(a or b for a, b in zip(last[1:], row[1:], strict=True)))
        elif any(row):
            joined.append(row)
    return joined


def _make_elements(
    lines: list[Line],
    header: tuple[str, ...],
    body: list[tuple[str, ...]],
    rows: Sequence[Row],
    bounds: Sequence[float],
) -> list[Element] | None:
    used = [c for c in range(len(bounds) + 1) if any(row[c] for row in body)]
    filled = sum(bool(row[c]) for row in body for c in used)
    if len(used) < 2 or filled < MIN_FILLED_SHARE * len(used) * sum(any(row[1:]) for row in body):
        return None
    ends = _find_ends(rows, bounds)
    centers = tuple(sum(ends[c]) / 2 for c in used)
    spot = Box(min(r.x0 for r in rows), max(r.x1 for r in rows), rows[-1].y0, rows[len(lines)].y1)
    header = tuple(header[c] for c in used) if header and any(header[c] for c in used) else ()
    return [*lines, Table(header, tuple(tuple(row[c] for c in used) for row in body), centers, spot)]
