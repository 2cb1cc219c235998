"""The order in which the columns of a page are read, with tables in and across them."""

import re

from tests.unit.library.pdf_pages import LEADING, Page, read

POOLS = (("Pool", "Size"), ("Small", "8"), ("Large", "32"))


def place_columns(page: Page, y: float, first: int) -> float:
    """Place eight rows of two columns, numbered from `first` on, and return the position below them."""
    for row in range(8):
        for x, side in ((60, "left"), (330, "right")):
            page.left(x, y + LEADING * row, f"{side}{first + row} and the text of this whole row ends.")
    return y + 8 * LEADING


def test_three_columns_are_read_one_after_the_other() -> None:
    page = Page()
    columns = [[f"{name}{n}" for n in range(60)] for name in ("first", "other", "third")]
    for row in range(15):
        for x, words in zip((60, 230, 400), columns, strict=True):
            page.left(x, 100 + LEADING * row, " ".join(words[4 * row : 4 * row + 4]))
    assert re.findall(r"[a-z]+\d+", read(page).text) == [word for words in columns for word in words]


def test_texts_side_by_side_without_certain_columns_keep_the_order_of_the_file() -> None:
    page = Page()
    for side, x in (("left", 72), ("right", 300)):
        for row in range(12):
            page.left(x + 30 * (row % 4), 100 + LEADING * row, f"{side} text of row {row}")
    for row in range(3):
        page.left(72, 300 + LEADING * row, "Value").left(300, 300 + LEADING * row, f"{row}00")
    text = read(page).text
    assert text.index("left text of row 11") < text.index("right text of row 0")


def test_rows_of_short_texts_are_no_columns_even_below_some_full_lines() -> None:
    page = Page()
    y = place_columns(page, 80, 10)
    for row in range(24):
        page.left(60, y + LEADING * row, f"A short text {row}").left(330, y + LEADING * row, f"Another text {row}")
    text = read(page).text
    assert text.index("Another text 0") < text.index("A short text 1")


def test_a_drawn_table_across_columns_ends_the_columns_above_it() -> None:
    page = Page()
    y = place_columns(page, 80, 10)
    y = page.grid(60, y, (300, 200), 20, POOLS)
    place_columns(page, y + 30, 20)
    marks = re.findall(r"(?:left|right)[12]0|\| Small", read(page).text)
    assert marks == ["left10", "right10", "| Small", "left20", "right20"]


def test_a_drawn_table_in_a_column_stands_between_its_texts() -> None:
    page = Page()
    y = place_columns(page, 80, 10)
    page.grid(330, y, (100, 100), 20, POOLS)
    for row in range(5):
        page.left(60, y + 12 + LEADING * row, "left and the text of this whole row ends.")
    place_columns(page, y + 90, 20)
    marks = re.findall(r"(?:left|right)[12]0|\| Small", read(page).text)
    assert marks == ["left10", "left20", "right10", "| Small", "right20"]
