"""What is read from pdfium for many characters or objects at once is what it returns for each of them."""

import re
import time
from collections.abc import Iterator
from typing import Any

import pypdfium2
import pytest
from pypdfium2 import raw

from offing.library.pdf.geometry import Line
from offing.library.pdf.page_layout import needs_layout
from offing.library.pdf.page_reader import LEADER, PageReader, turn_box, turn_boxes
from offing.library.pdf.paths import iter_path_boxes
from offing.library.pdf.pdfium_calls import Boxes, BoxTuple, get_address, read_char_boxes
from tests.unit.library.pdf_pages import SAMPLES

SIMPLE_LEADER = re.compile(r"[._\-=\u2026]{4,}|(?:[.\u2026_][ \t]){3,}[.\u2026_]?")


@pytest.fixture
def page() -> Iterator[Any]:
    with pypdfium2.PdfDocument(SAMPLES["ruled-table"]()) as document:
        yield document[0]


def read_char_box(text_page: Any, position: int) -> BoxTuple:
    return tuple(text_page.get_charbox(position, loose=True)[n] for n in (0, 2, 1, 3))  # pyright: ignore[reportReturnType]


def test_the_boxes_of_many_characters_are_those_of_each_of_them(page: Any) -> None:
    text_page = page.get_textpage()
    positions = range(text_page.count_chars())
    boxes = read_char_boxes(get_address(text_page.raw), positions)
    assert list(zip(*boxes, strict=True)) == [read_char_box(text_page, position) for position in positions]


def test_a_character_without_a_box_gets_the_one_before_it(page: Any) -> None:
    text_page = page.get_textpage()
    boxes = list(zip(*read_char_boxes(get_address(text_page.raw), [3, -1, 10**6, 4]), strict=True))
    assert boxes == [read_char_box(text_page, position) for position in (3, 3, 3, 4)]


def test_no_characters_have_no_boxes(page: Any) -> None:
    assert read_char_boxes(get_address(page.get_textpage().raw), []) == ([], [], [], [])


def test_the_boxes_of_drawn_lines_are_the_bounds_of_their_paths(page: Any) -> None:
    paths = list(page.get_objects(filter=[raw.FPDF_PAGEOBJ_PATH]))
    bounds = [path.get_bounds() for path in paths]
    boxes = list(iter_path_boxes(raw, get_address(page.raw), 1_000))
    assert len(boxes) > 20
    assert boxes == [(left, right, bottom, top) for left, bottom, right, top in bounds]


def test_a_page_with_more_objects_than_the_maximum_has_no_drawn_lines(page: Any) -> None:
    count = sum(1 for _ in page.get_objects(max_depth=1))
    assert list(iter_path_boxes(raw, get_address(page.raw), count))
    assert not list(iter_path_boxes(raw, get_address(page.raw), count - 1))


@pytest.mark.parametrize("turn", [1, 2, 3])
def test_many_boxes_are_turned_as_each_of_them(turn: int) -> None:
    boxes = Boxes([1.0, 5.0], [2.0, 7.0], [3.0, 11.0], [4.0, 13.0])
    assert list(zip(*turn_boxes(boxes, turn), strict=True)) == [turn_box(box, turn) for box in zip(*boxes, strict=True)]


@pytest.mark.parametrize(
    "text",
    [
        "Item 1 ..... 7",
        "a . . . . 12",
        "__ _ _ _ .",
        "-=-= x",
        "- - - - -",
        "...",
        ". . .",
        "= . . . .",
        "a.b-c_d",
        "…… … … …",
    ],
)
def test_the_fast_pattern_of_leaders_finds_what_the_simple_one_finds(text: str) -> None:
    assert [m.span() for m in LEADER.finditer(text)] == [m.span() for m in SIMPLE_LEADER.finditer(text)]


def test_no_more_lines_are_looked_at_than_are_needed_to_know_that_gaps_are_missing() -> None:
    lines = [Line("x" * 80, 72.0, 472.0, 700.0 - 12 * n, 710.0 - 12 * n) for n in range(40)]
    numbers = list[int]()

    def has_wide_gap(number: int) -> bool:
        numbers.append(number)
        return False

    assert not needs_layout(lines, has_wide_gap)
    assert len(numbers) == 2
    assert needs_layout(lines, lambda number: number != numbers[0])


def test_reading_the_boxes_of_a_page_at_once_takes_a_part_of_the_time(page: Any) -> None:
    text_page = page.get_textpage()
    positions = range(text_page.count_chars())

    def measure_seconds(read: Any) -> float:
        began = time.thread_time()
        read()
        return time.thread_time() - began

    one_by_one = min(measure_seconds(lambda: [read_char_box(text_page, n) for n in positions]) for _ in range(5))
    handle = get_address(text_page.raw)
    at_once = min(measure_seconds(lambda: read_char_boxes(handle, positions)) for _ in range(5))
    assert at_once < 0.6 * one_by_one


def test_words_are_read_with_their_boxes_from_first_to_last_character() -> None:
    with pypdfium2.PdfDocument(SAMPLES["annual-report"]()) as document:
        reader = PageReader(document, 0)
        words, text_page = reader.read_words(), document[0].get_textpage()
        at = 0
        for word in words:
            at = reader.text.index(word.text, at)
            first, last = read_char_box(text_page, at), read_char_box(text_page, at + len(word.text) - 1)
            assert word[1:] == (first[0], max(first[1], last[1]), first[2], first[3])
            at += len(word.text)
        reader.close()
