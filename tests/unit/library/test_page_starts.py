"""Where in the text of a PDF its pages begin: exactly where the words of each page are."""

from fpdf import FPDF

from offing.library.extraction import extract_text
from offing.library.page_starts import PageStarts, convert_text, drop_repeated_pages
from offing.library.pdf.geometry import Line
from offing.library.pdf_reader import write_pages

FIRST = "The pool keeps its connections open for later requests, and the server closes those that have been unused and"
SECOND = "idle for longer than an hour, because each of them takes memory."


def pages_of(text: str, starts: PageStarts) -> list[tuple[int, str]]:
    """Return the page and the text of each part."""
    ends = [at for at, _ in starts[1:]] + [len(text)]
    return [(page, text[at:end].strip()) for (at, page), end in zip(starts, ends, strict=True)]


def line(text: str, y: float, height: float = 10.0) -> Line:
    return Line(text, 50.0, 500.0, y, y + height)


def read_pdf(*pages: str) -> list[tuple[int, str]]:
    pdf = FPDF()
    pdf.set_font("helvetica", size=12)
    for text in pages:
        pdf.add_page()
        pdf.multi_cell(0, 5, text)
    document = extract_text(bytes(pdf.output()), "a.pdf")
    return pages_of(document.text, document.page_starts)


def test_the_text_of_each_page_is_known_and_a_page_without_text_has_none() -> None:
    assert read_pdf("One page is here.", "", "Three is the number.") == [
        (1, "One page is here."),
        (3, "Three is the number."),
    ]


def test_a_sentence_over_two_pages_is_divided_where_the_second_begins() -> None:
    text, starts = write_pages([[line(FIRST, 700)], [line(SECOND, 700)]], set())
    assert text == f"{FIRST} {SECOND}"
    assert list(starts) == [(0, 1), (len(FIRST) + 1, 2)]


def test_a_note_between_the_halves_of_a_sentence_is_on_its_own_page() -> None:
    body = [line(f"Line number {n} of the body.", 700 - 20 * n) for n in range(3)]
    note = line("1 A note at the foot.", 50, 7.0)
    text, starts = write_pages([[*body, line(FIRST, 600), note], [line(SECOND, 700)]], set())
    parts = pages_of(text, starts)
    assert [(page, part.split()[0]) for page, part in parts] == [(1, "Line"), (2, "idle"), (1, "1")]


def test_a_broken_word_and_characters_that_are_dropped_move_the_pages_after_them() -> None:
    first = f"{FIRST[:-3]}con\u00adnec\u00adtions of \U0001f600 some-"
    surrogates = first.encode("utf-16-le").decode("utf-16-le", "surrogatepass")
    wide = "".join(c if ord(c) < 0x10000 else "\ud83d\ude00" for c in surrogates)
    text, starts = write_pages([[line(wide, 700)], [line("what idle servers.", 700)], [line("New.", 700)]], set())
    assert "connections of \U0001f600 somewhat idle" in text
    assert [(page, part[:12]) for page, part in pages_of(text, starts)] == [
        (1, FIRST[:12]),
        (2, "what idle se"),
        (3, "New."),
    ]


def test_an_image_is_a_page() -> None:
    text, starts = write_pages([[line("Words.", 700)], [], [line("More words.", 700)]], {1})
    assert [page for page, _ in pages_of(text, starts)] == [1, 2, 3]


def test_converting_a_text_moves_the_starts_of_its_pages() -> None:
    text, starts = convert_text("a\x00b\x00c", ((0, 1), (2, 2), (4, 3)), lambda part: part.replace("\x00", ""))
    assert (text, list(starts)) == ("abc", [(0, 1), (1, 2), (2, 3)])


def test_a_page_that_begins_twice_in_a_row_begins_once() -> None:
    assert drop_repeated_pages([(0, 1), (4, 1), (8, 2), (12, 1)]) == [(0, 1), (8, 2), (12, 1)]
