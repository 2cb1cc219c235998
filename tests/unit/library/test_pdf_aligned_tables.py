"""Where tables without drawn cells begin and end, and which rows of a page are none."""

from tests.unit.library.pdf_pages import LEADING, PROSE, STATEMENT, VALUE_COLUMNS, Page, place_statement, read


def test_texts_that_share_a_column_in_most_rows_stay_lines() -> None:
    page = Page()
    for row in range(12):
        x, y = 400 + 7 * row, 100 + LEADING * row
        page.left(72, y, f"Pool number {row}").right(330, y, f"{row},100").left(x, y, "12").left(x + 35, y, "34")
    text = read(page).text
    assert "|" not in text
    assert "Pool number 0  0,100  12  34" in text


def test_values_that_leave_most_columns_empty_stay_lines() -> None:
    page = Page()
    for row in range(6):
        page.left(72, 100 + LEADING * row, f"Pool number {row}")
        page.left(200 + 50 * row, 100 + LEADING * row, f"{row}00")
    text = read(page).text
    assert "|" not in text
    assert "Pool number 3  300" in text


def test_a_table_ends_where_its_rows_are_far_apart() -> None:
    page = Page()
    y = place_statement(page, 100) + 40
    for row in range(4):
        page.left(72, y + LEADING * row, f"Pool number {row}")
        for column in VALUE_COLUMNS:
            page.right(column, y + LEADING * row, f"{row},100")
    assert "| 28.3% |\n\n| Pool number 0 | 0,100 |" in read(page).text


def test_a_statement_with_another_header_does_not_go_on() -> None:
    page = Page()
    place_statement(page, 560, STATEMENT[:6])
    page.next().left(72, 60, "(In thousands)")
    for column in VALUE_COLUMNS:
        page.right(column, 60, "2015")
    for row, (label, *values) in enumerate(STATEMENT[2:6], 1):
        page.left(72, 60 + LEADING * row, label.strip())
        for column, value in zip(VALUE_COLUMNS, values[1::2], strict=True):
            page.right(column, 60 + LEADING * row, value)
    assert "\n\n| (In thousands) | 2015 | 2015 | 2015 |\n|---|" in read(page).text


def test_a_running_footer_that_looks_like_a_row_is_no_row() -> None:
    page = Page()
    for number in range(1, 6):
        page.lines(72, 72, 460, PROSE)
        page.left(72, 600, "Pool Company").left(300, 600, f"{number}").left(400, 600, "2018").next()
    y = place_statement(page, 500)
    page.left(72, y, "Pool Company").left(300, y, "6").left(400, y, "2018")
    text = read(page).text
    assert "Effective tax rate" in text
    assert "Pool Company" not in text
