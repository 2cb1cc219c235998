"""Decide how a page is read: by its lines, or by its words in columns and tables."""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, pairwise

from offing.library.pdf.aligned_tables import find_aligned_tables
from offing.library.pdf.geometry import Box, Element, Line, Ruling, Table, Word, join_boxes
from offing.library.pdf.rows import Row, group_rows, group_words, is_value, make_row
from offing.library.pdf.ruled_tables import find_ruled_tables

MIN_SIGNS = 3
"""Minimum number of lines that look like cells on a page that is read by its words."""
MIN_EXCESS = 2.5
"""Minimum width of a line beyond that of its characters, in heights of the line, to look for a gap in the line."""
MAX_LINES_TO_CHECK = 16
MIN_LONG_LINE_CHARS = 60
MIN_PROSE_WORDS = 3
MIN_COLUMN_ROWS = 5
"""Minimum rows of text on both sides of the space between two columns of a page."""

MIN_LINE_FILL = 0.7
"""Minimum width of a full line of text, as a share of its column."""
GUTTER_BINS = 200
GUTTER_RANGES = (((0.3, 0.7),), ((0.22, 0.45), (0.55, 0.78)))
"""Where the spaces between two columns and between three columns are, as shares of the width of the text."""
MIN_FULL_SHARE = 0.4
"""Minimum share of lines in a column that are full."""
MAX_SIDE_BY_SIDE_SHARE = 0.4
"""Maximum share of rows with text side by side on a page without columns."""


def needs_layout(lines: Sequence[Line], has_wide_gap: Callable[[int], bool]) -> bool:
    """Return whether lines contain wide gaps, or stand side by side like cells.

    `has_wide_gap` looks at the words of a line by its number. That is expensive, so only lines are looked at that are
    wider than their characters, and a sample of long lines, which may run across two columns of a page.
    """
    usual = _usual_char_width(lines)
    wide, cells, jumps = list[int](), 0, 0
    last: Line | None = None
    for number, line in enumerate(lines):
        height = line.y1 - line.y0
        if line.x1 - line.x0 - len(line.text) * usual * height > MIN_EXCESS * height:
            wide.append(number)
        if last:
            jumps += line.y0 > last.y0 + 0.4 * height and line.x0 > last.x0 + 2 * height
            cells += abs(line.y0 - last.y0) < 0.4 * height and line.x0 > last.x1 + 0.3 * height
        cells += is_value(line.text)
        last = line
    if cells >= MIN_SIGNS or jumps >= MIN_SIGNS:
        return True
    long = [number for number, line in enumerate(lines) if len(line.text) > MIN_LONG_LINE_CHARS]
    sample = long[len(long) // 8 :: max(1, len(long) // 4)][:4]
    return _have_wide_gaps(wide[:MAX_LINES_TO_CHECK], has_wide_gap) or (
        len(sample) == 4 and _have_wide_gaps(sample, has_wide_gap)
    )


def _have_wide_gaps(numbers: Sequence[int], has_wide_gap: Callable[[int], bool]) -> bool:
    """Return whether at least `MIN_SIGNS` lines have a wide gap. Looks at no more lines than are needed to know it."""
    missing, spare = MIN_SIGNS, len(numbers) - MIN_SIGNS
    for number in numbers:
        if missing == 0 or spare < 0:
            break
        if has_wide_gap(number):
            missing -= 1
        else:
            spare -= 1
    return missing == 0


def _usual_char_width(lines: Sequence[Line]) -> float:
    """Return the median width of a character in long lines, in heights of its line."""
    widths = [
        (line.x1 - line.x0) / (len(line.text) * (line.y1 - line.y0))
        for line in lines
        if len(line.text) > 30 and line.y1 > line.y0
    ]
    widths.sort()
    return min(widths[len(widths) // 2], 0.6) if len(widths) >= 3 else 0.45


def analyze_layout(words: Sequence[Word], rulings: Sequence[Ruling]) -> list[Element] | None:
    """Return the lines and tables of a page in reading order.

    `None` means that text stands side by side, but not in columns that are certain, so that the order of the file is
    better than that of rows.
    """
    tables, rest = find_ruled_tables(words, rulings)
    horizontal = [r for r in rulings if r.y0 == r.y1]
    groups = [(group, make_row(group)) for group in group_words(rest)]
    gutters = find_gutters([row for _, row in groups])
    if not gutters and not tables and _has_text_side_by_side([row for _, row in groups]):
        return None
    elements = list[Element]()
    if gutters:
        for part in _split_columns(groups, tables, gutters):
            elements.extend(_read_column(part, group_rows(part), tables, horizontal))
    elif rest:
        elements.extend(_read_column(rest, [row for _, row in groups], tables, horizontal))
    return [*elements, *tables]


def _has_text_side_by_side(rows: Sequence[Row]) -> bool:
    side_by_side = sum(sum(chunk.words >= MIN_PROSE_WORDS for chunk in row.chunks) > 1 for row in rows)
    return side_by_side > MAX_SIDE_BY_SIDE_SHARE * len(rows)


def _read_column(
    words: Sequence[Word], rows: Sequence[Row], tables: list[Table], rulings: Sequence[Ruling]
) -> Iterator[Element]:
    """Yield the lines and tables of a column of text. Ruled tables that stand in it are removed from `tables`."""
    box = join_boxes(words)
    inside = sorted((t for t in tables if _is_inside(t.box, box)), key=lambda t: -t.box.y1)
    tables[:] = [t for t in tables if t not in inside]
    for table in inside:
        count = sum(row.y0 > table.box.y1 - 2 for row in rows)
        yield from find_aligned_tables(rows[:count], box, rulings)
        yield table
        rows = rows[count:]
    yield from find_aligned_tables(rows, box, rulings)


def _is_inside(table: Box, column: Box) -> bool:
    """Return whether a table belongs to a column. A table that is wider belongs to the column below it."""
    if min(table.x1, column.x1) <= max(table.x0, column.x0):
        return False
    return table.x1 - table.x0 <= 1.2 * (column.x1 - column.x0) or table.y1 > column.y0


def _split_columns(
    groups: Sequence[tuple[list[Word], Row]], tables: Sequence[Table], gutters: Sequence[float]
) -> Iterator[list[Word]]:
    """Yield the words of each column in reading order. A row across columns ends the columns above it."""
    tops = [t.box.y1 for t in tables if any(t.box.x0 < gutter < t.box.x1 for gutter in gutters)]
    bands = dict[tuple[int, int], list[Word]]()
    crossings, was_across = 0, False
    for group, row in groups:
        is_across = any(c.x0 < gutter - 1 and c.x1 > gutter + 1 for c in row.chunks for gutter in gutters)
        crossings += is_across != was_across
        was_across = is_across
        bands.setdefault((crossings, sum(top >= row.y0 for top in tops)), []).extend(group)
    for (number, _), band in bands.items():
        yield from ([band] if number % 2 else filter(None, _split_at(band, gutters)))


def _split_at(words: Sequence[Word], gutters: Sequence[float]) -> list[list[Word]]:
    parts: list[list[Word]] = [[] for _ in range(len(gutters) + 1)]
    for word in words:
        parts[bisect_right(gutters, (word.x0 + word.x1) / 2)].append(word)
    return parts


def find_gutters(rows: Sequence[Row]) -> list[float]:
    """Return the positions between two or three columns of text. Empty if the page has one column."""
    if len(rows) < MIN_COLUMN_ROWS:
        return []
    x0, x1 = min(row.x0 for row in rows), max(row.x1 for row in rows)
    scale = GUTTER_BINS / max(x1 - x0, 1.0)
    prose = [c for row in rows for c in row.chunks if c.words >= MIN_PROSE_WORDS and (c.x1 - c.x0) * scale > 15]
    changes = [0] * (GUTTER_BINS + 2)
    for chunk in prose:
        changes[int((chunk.x0 - x0) * scale)] += 1
        changes[int((chunk.x1 - x0) * scale) + 1] -= 1
    covered = list(accumulate(changes))
    for ranges in GUTTER_RANGES:
        gutters = [x0 + (_find_lowest(covered, start, end) + 0.5) / scale for start, end in ranges]
        if _has_text_in_columns(rows, [x0, *gutters, x1]):
            return gutters
    return []


def _find_lowest(counts: Sequence[int], start: float, end: float) -> int:
    """Return the middle of the positions with the lowest count. `start` and `end` are shares of all positions."""
    first, last = int(start * GUTTER_BINS), int(end * GUTTER_BINS)
    lowest = min(counts[first:last])
    positions = [n for n in range(first, last) if counts[n] == lowest]
    return positions[len(positions) // 2]


def _has_text_in_columns(rows: Sequence[Row], edges: Sequence[float]) -> bool:
    """Return whether lines fill each column up to its edges, as text does and cells do not."""
    for start, end in pairwise(edges):
        inside = [c for row in rows for c in row.chunks if c.x0 >= start - 1 and c.x1 <= end + 1]
        full = [c for c in inside if c.words >= MIN_PROSE_WORDS and c.x1 - c.x0 > MIN_LINE_FILL * (end - start)]
        if len(full) < MIN_COLUMN_ROWS or len(full) < MIN_FULL_SHARE * len(inside):
            return False
    return True
