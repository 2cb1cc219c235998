"""Find tables whose cells are drawn: a grid of horizontal and vertical lines."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from offing.library.pdf.cells import join_cell_lines, join_header
from offing.library.pdf.geometry import Box, Ruling, Table, Word
from offing.library.pdf.rows import Row, group_rows, is_value, is_year

MAX_GRID_RULINGS = 600
"""Maximum drawn lines of a page after lines in a row are joined. With more, no grid is searched for."""
MAX_GRID_CELLS = 10_000
SNAP_POINTS = 3.0
"""Maximum distance of lines that are one line."""
MAX_UNRULED_SHARE = 0.3
"""Maximum share of cells that contain several chunks on a row. With more, the grid does not show all columns."""


MAX_REPEATED_CELL_CHARS = 200
"""Maximum characters of a cell that spans rows and is repeated in each of them."""
MAX_HEADER_ROWS = 4
MIN_TALL_ROWS = 3
MIN_TALL_FILL = 0.8
"""Minimum lines of a tall cell that is divided, per row of the grid."""


class _GridRow(NamedTuple):
    plain: tuple[str, ...]
    """The texts by column. A cell that spans columns is in the first of them."""
    spread: tuple[str, ...]
    """The texts by column. A cell that spans columns is in each of them."""

    def with_label(self, rest: str) -> "_GridRow":
        label = join_cell_lines([self.plain[0], rest])
        return _GridRow((label, *self.plain[1:]), (label, *self.spread[1:]))


@dataclass(frozen=True, slots=True)
class _Grid:
    """Lines that cross one another. `columns` and `rows` are the positions of their lines, in reading order."""

    columns: tuple[float, ...]
    rows: tuple[float, ...]
    """From top to bottom."""
    horizontal: tuple[Ruling, ...]
    vertical: tuple[Ruling, ...]

    @property
    def box(self) -> Box:
        return Box(self.columns[0], self.columns[-1], self.rows[-1], self.rows[0])


def find_ruled_tables(words: Sequence[Word], rulings: Sequence[Ruling]) -> tuple[list[Table], list[Word]]:
    """Return the tables in drawn grids, and the words outside of them."""
    tables, rest = list[Table](), list(words)
    for grid in _find_grids(rulings):
        inside, outside = _split_words(rest, grid.box)
        if inside and (table := _read_grid(grid, inside)):
            tables.append(table)
            rest = outside
    return tables, rest


def _split_words(words: Sequence[Word], box: Box) -> tuple[list[Word], list[Word]]:
    """Return the words whose centers are in a box, and the others."""
    left, right, bottom, top = (2 * edge for edge in box)
    inside, outside = list[Word](), list[Word]()
    for word in words:
        _, x0, x1, y0, y1 = word
        (inside if left <= x0 + x1 <= right and bottom <= y0 + y1 <= top else outside).append(word)
    return inside, outside


def _find_grids(rulings: Sequence[Ruling]) -> Iterator[_Grid]:
    horizontal = _join_rulings(r for r in rulings if r.y0 == r.y1)
    vertical = [
        Ruling(r.y0, r.y0, r.x0, r.x1)
        for r in _join_rulings(Ruling(r.y0, r.y1, r.x0, r.x0) for r in rulings if r.y0 != r.y1)
    ]
    if not horizontal or not vertical or len(horizontal) + len(vertical) > MAX_GRID_RULINGS:
        return
    for h_group, v_group in _connect(horizontal, vertical):
        columns = _cluster([r.x0 for r in v_group] + [x for r in h_group for x in (r.x0, r.x1)])
        rows = _cluster([r.y0 for r in h_group] + [y for r in v_group for y in (r.y0, r.y1)])
        if len(columns) >= 3 and len(rows) >= 3 and len(columns) * len(rows) <= MAX_GRID_CELLS:
            yield _Grid(tuple(columns), tuple(reversed(rows)), tuple(h_group), tuple(v_group))


def _join_rulings(rulings: Iterable[Ruling]) -> list[Ruling]:
    """Join horizontal lines that continue or cover one another."""
    joined = list[Ruling]()
    x0 = x1 = y0 = y1 = 0.0
    is_open = False
    for line in sorted(rulings, key=lambda r: (round(r[2] / SNAP_POINTS), r[0])):
        next_x0, next_x1, next_y0, next_y1 = line
        if is_open and abs(y0 - next_y0) <= SNAP_POINTS and x0 <= next_x0 <= x1 + SNAP_POINTS:
            x1 = next_x1 if next_x1 > x1 else x1
            continue
        if is_open:
            joined.append(Ruling(x0, x1, y0, y1))
        x0, x1, y0, y1, is_open = next_x0, next_x1, next_y0, next_y1, True
    if is_open:
        joined.append(Ruling(x0, x1, y0, y1))
    return joined


def _connect(horizontal: Sequence[Ruling], vertical: Sequence[Ruling]) -> Iterator[tuple[list[Ruling], list[Ruling]]]:
    """Yield the groups of lines that cross or touch one another."""
    parent = list(range(len(horizontal) + len(vertical)))

    def find_root(node: int) -> int:
        while parent[node] != node:
            parent[node] = parent[parent[node]]
            node = parent[node]
        return node

    vertical = sorted(vertical)
    positions = [v.x0 for v in vertical]
    for i, h in enumerate(horizontal):
        first = bisect_left(positions, h.x0 - SNAP_POINTS)
        for j in range(first, bisect_right(positions, h.x1 + SNAP_POINTS, first)):
            if vertical[j].y0 - SNAP_POINTS <= h.y0 <= vertical[j].y1 + SNAP_POINTS:
                parent[find_root(i)] = find_root(len(horizontal) + j)
    groups = dict[int, tuple[list[Ruling], list[Ruling]]]()
    for node in range(len(parent)):
        side = 0 if node < len(horizontal) else 1
        line = horizontal[node] if side == 0 else vertical[node - len(horizontal)]
        groups.setdefault(find_root(node), ([], []))[side].append(line)
    yield from (group for group in groups.values() if group[0] and group[1])


def _cluster(positions: list[float]) -> list[float]:
    """Return one position per group of positions that are closer than `SNAP_POINTS`."""
    clusters = list[float]()
    for position in sorted(positions):
        if not clusters or position - clusters[-1] > SNAP_POINTS:
            clusters.append(position)
    return clusters


def _read_grid(grid: _Grid, words: Sequence[Word]) -> Table | None:
    """Return the table of a grid, or `None` if its lines do not separate all of its cells."""
    roots = _merge_cells(grid)
    contents = dict[int, list[Word]]()
    width = len(grid.columns) - 1
    depths = [-y for y in grid.rows]
    for word in words:
        column = bisect_right(grid.columns, (word.x0 + word.x1) / 2) - 1
        row = bisect_left(depths, -(word.y0 + word.y1) / 2) - 1
        if 0 <= column < width and 0 <= row < len(depths) - 1:
            contents.setdefault(roots[row * width + column], []).append(word)
    rows = {root: group_rows(content) for root, content in contents.items()}
    _divide_tall_cells(roots, rows, depths, width)
    loose = sum(any(row.has_gap(1.5) for row in content) for content in rows.values())
    if len(rows) < 2 or loose > MAX_UNRULED_SHARE * len(rows):
        return None
    table = _fill_rows(roots, rows, width)
    return _make_table(table, grid) if table else None


def _divide_tall_cells(roots: list[int], contents: dict[int, list[Row]], depths: Sequence[float], width: int) -> None:
    """Divide a cell beside several rows of the grid if it has about as many lines: only its lines are not drawn."""
    for root, lines in list(contents.items()):
        below = [at for at in range(root, len(roots), width) if roots[at] == root]
        if (
            len(below) < MIN_TALL_ROWS
            or len(lines) < MIN_TALL_FILL * len(below)
            or roots[root : root + 2] == [root] * 2
        ):
            continue
        del contents[root]
        for at in below:
            roots[at] = at
        for line in lines:
            row = min(bisect_left(depths, -(line.y0 + line.y1) / 2) - 1, below[-1] // width)
            contents.setdefault(max(row, root // width) * width + root % width, []).append(line)


def _merge_cells(grid: _Grid) -> list[int]:
    """Return for each cell, row by row, the first cell that it is joined with because no line is between them."""
    width, height = len(grid.columns) - 1, len(grid.rows) - 1
    walls = _mark_lines(((v.x0, v.y0, v.y1) for v in grid.vertical), grid.columns, list(reversed(grid.rows)))
    floors = _mark_lines(((h.y0, h.x0, h.x1) for h in grid.horizontal), list(reversed(grid.rows)), grid.columns)
    roots = list(range(width * height))
    for row in range(height):
        for column in range(width):
            at = row * width + column
            if column and (column, height - 1 - row) not in walls:
                roots[at] = roots[at - 1]
            elif row and (height - row, column) not in floors:
                roots[at] = roots[at - width]
    return roots


def _mark_lines(
    lines: Iterable[tuple[float, float, float]], positions: Sequence[float], crossings: Sequence[float]
) -> set[tuple[int, int]]:
    """Return the pairs of a position and an interval between crossings along which a line is drawn."""
    marked = set[tuple[int, int]]()
    for at, start, end in lines:
        position = bisect_left(positions, at - SNAP_POINTS)
        first, last = bisect_left(crossings, start - SNAP_POINTS), bisect_right(crossings, end + SNAP_POINTS) - 1
        marked.update((position, interval) for interval in range(first, last))
    return marked


def _fill_rows(roots: list[int], contents: dict[int, list[Row]], width: int) -> list[_GridRow]:
    """Return the texts by row and column. The text of a cell that spans rows is in each of them."""
    table = list[_GridRow]()
    for at in range(0, len(roots), width):
        cells = roots[at : at + width]
        own = [contents.get(root, []) if root >= at else [] for root in cells]
        if not any(own):
            continue
        if table and _is_label_rest(own):
            table[-1] = table[-1].with_label(_join_rows(own[0]))
            continue
        if split := _split_lines(own):
            table.extend(_GridRow(row, row) for row in split)
            continue
        texts = [_join_rows(contents.get(root, ())) for root in cells]
        texts = [
            text if root >= at or len(text) <= MAX_REPEATED_CELL_CHARS else ""
            for root, text in zip(cells, texts, strict=True)
        ]
        plain = [text if not n or cells[n - 1] != cells[n] else "" for n, text in enumerate(texts)]
        table.append(_GridRow(tuple(plain), tuple(texts)))
    return table


def _is_label_rest(cells: Sequence[Sequence[Row]]) -> bool:
    """Return whether a row consists of the rest of the label above it."""
    return bool(cells[0]) and not any(cells[1:]) and (cells[0][0].text[0].islower() or cells[0][0].text[0] == "(")


def _join_rows(rows: Iterable[Row]) -> str:
    return join_cell_lines([" ".join(chunk.text for chunk in row.chunks) for row in rows])


def _split_lines(cells: list[list[Row]]) -> list[tuple[str, ...]]:
    """Return the lines of a row of the grid as rows, if most of their cells are values on common baselines."""
    filled = [cell for cell in cells if cell]
    if len(filled) < 2 or max(map(len, filled)) < 3:
        return []
    values = [cell for cell in filled if sum(is_value(row.text) for row in cell) >= max(2, 0.7 * len(cell))]
    if not values or len(values) < (len(filled) - 1) * 0.6:
        return []
    baselines = [(row.y0 + row.y1) / 2 for row in max(values, key=len)]
    split = [["" for _ in cells] for _ in baselines]
    for column, cell in enumerate(cells):
        for row in cell:
            center = (row.y0 + row.y1) / 2
            nearest = min(range(len(baselines)), key=lambda n: abs(baselines[n] - center))
            split[nearest][column] = join_cell_lines([split[nearest][column], row.text])
    return [tuple(row) for row in split]


def _make_table(rows: list[_GridRow], grid: _Grid) -> Table | None:
    """Return the table of the rows, with columns joined that only cells of the header divide."""
    title, rows = _split_title(rows)
    width, count = len(grid.columns) - 1, _count_header_rows([row.plain for row in rows])
    used = [column for column in range(width) if any(row.plain[column] for row in rows[count:])]
    if len(used) < 2 or len(rows) < 2:
        return None
    head = [[row.spread[c] for c in range(width)] for row in rows[:count]]
    ends = [*used[1:], width]
    header = [_join_columns(texts, used, ends) for texts in head]
    centers = tuple((grid.columns[c] + grid.columns[c + 1]) / 2 for c in used)
    body = tuple(tuple(row.plain[c] for c in used) for row in rows[count:])
    return Table(join_header(header), body, centers, grid.box, is_ruled=True, title=title)


def _split_title(rows: list[_GridRow]) -> tuple[str, list[_GridRow]]:
    """Return the text of a first row that is one cell, and the other rows."""
    first = set(filter(None, rows[0].spread))
    if len(rows) > 2 and len(first) == 1 and all(rows[0].spread):
        return first.pop(), rows[1:]
    return "", rows


def _join_columns(texts: Sequence[str], starts: Sequence[int], ends: Sequence[int]) -> tuple[str, ...]:
    return tuple(
        join_cell_lines(dict.fromkeys(filter(None, texts[start:end]))) for start, end in zip(starts, ends, strict=True)
    )


def _count_header_rows(rows: list[tuple[str, ...]]) -> int:
    """Return the number of rows before the first one with values under most of its columns, or with a label only."""
    for number, row in enumerate(rows[: MAX_HEADER_ROWS + 1]):
        texts = [text for text in row[1:] if text]
        if texts and sum(is_value(text) and not is_year(text) for text in texts) >= len(texts) / 2:
            return number
        if number and not texts:
            return number
    return 1
