"""Tables with drawn cells: which lines are a grid, what a cell contains, and how a table goes on over pages."""

import pytest

from tests.unit.library.pdf_pages import LEADING, Page, read, table_lines

HEADER = ("Country", "Number", "Area")

COUNTRIES = tuple((f"Country {n}", f"{n}0", f"{n}.5") for n in range(8))

WIDTHS = (100.0, 80.0, 80.0)


def test_lines_that_almost_meet_are_a_grid() -> None:
    page = Page()
    page.pdf.line(74, 72, 330, 72)
    for n, (name, *values) in enumerate(COUNTRIES[:4]):
        page.pdf.line(74, 100 + 28 * n, 330, 100 + 28 * n)
        for x in (72, 172, 252, 332):
            page.pdf.line(x, 74 + 28 * n, x, 98 + 28 * n)
        page.left(76, 84 + 28 * n, name).left(76, 95 + 28 * n, "Mainland")
        page.left(176, 84 + 28 * n, values[0]).left(256, 84 + 28 * n, values[1])
    assert table_lines(read(page).text) == [
        f"| {name} Mainland | {number} | {area} |" for name, number, area in COUNTRIES[:4]
    ]


def test_a_grid_whose_cells_contain_columns_is_no_table_by_itself() -> None:
    page = Page()
    page.grid(60, 72, (250, 250), 30, [("Results", "Of the pools")])
    page.pdf.rect(60, 102, 250, 100)
    page.pdf.rect(310, 102, 250, 100)
    for row in range(6):
        y = 116 + LEADING * row
        page.left(66, y, f"Pool number {row}")
        page.right(300, y, f"{row},100").right(400, y, f"{row},200").right(500, y, f"{row},300")
    assert "| Pool number 3 | 3,100 | 3,200 | 3,300 |" in read(page).text


def test_lines_in_a_tall_cell_beside_drawn_rows_get_their_rows() -> None:
    page = Page()
    page.grid(72, 72, WIDTHS, 20, [HEADER])
    page.pdf.rect(72, 92, 100, 80)
    for n, (name, *_) in enumerate(COUNTRIES[:4]):
        page.left(76, 106 + 20 * n, name)
    page.grid(172, 92, WIDTHS[1:], 20, [values for _, *values in COUNTRIES[:4]])
    assert table_lines(read(page).text)[1:] == [f"| {' | '.join(row)} |" for row in COUNTRIES[:4]]


def test_values_in_one_drawn_row_are_rows() -> None:
    page = Page()
    page.grid(72, 72, WIDTHS, 20, [HEADER])
    page.grid(72, 92, WIDTHS, 60, [("Japan\nKorea\nSpain", "10\n20\n30", "1.5\n2.5\n3.5")])
    assert table_lines(read(page).text)[1:] == ["| Japan | 10 | 1.5 |", "| Korea | 20 | 2.5 |", "| Spain | 30 | 3.5 |"]


def test_a_label_that_goes_on_in_the_next_drawn_row_is_one_label() -> None:
    page = Page()
    rows = (HEADER, ("Japan", "10", "1.5"), ("(without islands)", "", ""), ("Spain", "30", "3.5"))
    page.grid(72, 72, WIDTHS, 20, rows)
    assert "| Japan (without islands) | 10 | 1.5 |" in read(page).text


def test_a_drawn_cell_above_all_columns_is_the_title_of_its_table() -> None:
    page = Page()
    y = page.grid(72, 72, (sum(WIDTHS),), 20, [("Warehouses at the end of the year",)])
    page.grid(72, y, WIDTHS, 20, [HEADER, *COUNTRIES[:2]])
    assert read(page).text.startswith("Warehouses at the end of the year\n\n| Country | Number | Area |\n")


def test_a_narrow_drawn_column_is_a_column() -> None:
    page = Page()
    rows = [(f"Pool number {n}", "x", "", f"{n}.5") for n in range(4)]
    page.grid(72, 72, (100, 11, 11, 80), 20, [("Pool", "A", "B", "Area"), *rows, ("Last pool", "", "x", "9.5")])
    assert "| Pool number 1 | x |  | 1.5 |" in read(page).text


@pytest.mark.parametrize(
    ("shift", "line"),
    [(0, "| Country | Number | Area |"), (10, "| Country | Number | Area |"), (40, "| Country 4 | 40 | 4.5 |")],
)
def test_a_table_goes_on_only_in_the_same_columns(shift: float, line: str) -> None:
    page = Page()
    page.grid(72, 72, WIDTHS, 20, [HEADER, *COUNTRIES[:4]])
    page.next().grid(72, 72, (WIDTHS[0] + shift, *WIDTHS[1:]), 20, COUNTRIES[4:])
    assert table_lines(read(page).text)[5] == line


def test_a_table_that_repeats_its_header_on_the_next_page_has_it_once_on_each() -> None:
    page = Page()
    page.grid(72, 72, WIDTHS, 20, [HEADER, *COUNTRIES[:4]])
    page.next().grid(72, 72, WIDTHS, 20, [HEADER, *COUNTRIES[4:]])
    assert table_lines(read(page).text).count("| Country | Number | Area |") == 2


def test_a_note_below_a_table_does_not_end_it() -> None:
    page = Page()
    y = page.grid(72, 72, WIDTHS, 20, [HEADER, *COUNTRIES[:4]])
    page.left(72, y + 20, "* Some of them are leased.")
    page.next().grid(72, 72, WIDTHS, 20, COUNTRIES[4:])
    assert table_lines(read(page).text)[5] == "| Country | Number | Area |"
