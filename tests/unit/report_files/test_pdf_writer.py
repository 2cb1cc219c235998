"""Reports as PDF, read back with PDFium."""

import re
import unicodedata
from dataclasses import replace
from functools import cache
from typing import Any
from uuid import UUID

import pypdfium2
import pypdfium2.raw
import pytest

from offing.core.report import Layout, Report, Section, Sentence, SourceDetails
from offing.core.report_document import build_report_document
from offing.report_files.pdf_writer import write_pdf
from tests.unit.core.test_report_formats import HOSTILE
from tests.unit.core.test_report_formats import report as hostile_report
from tests.unit.report_files.sample_reports import ENGLISH_CITATIONS, MARCH, SAMPLES, english_report

pdfium: Any = pypdfium2.raw


def opened(data: bytes) -> Any:
    return pypdfium2.PdfDocument(data)


def written(report: Report, language: str | None = None) -> bytes:
    return write_pdf(build_report_document(report, MARCH, language))


@cache
def sample_file(sample: str) -> bytes:
    return written(SAMPLES[sample]())


def read_text(data: bytes) -> str:
    """Text of all pages on one line, without the numbers at their ends."""
    file = opened(data)
    pages = [page.get_textpage().get_text_range().rstrip().rstrip("0123456789") for page in file]
    return " ".join(" ".join(pages).replace("\ufffe", "").split())


def squeezed(text: str) -> str:
    """Letters and digits only, because lines end anywhere in Chinese and between words in other scripts."""
    return "".join(c for c in unicodedata.normalize("NFKC", text) if c.isalnum())


def list_web_links(data: bytes) -> list[str]:
    return [u.decode() for u in re.findall(rb"/URI \(([^)]*)\)", data)]


def count_links(file: Any) -> int:
    """Number of links in a file that lead to a place in it."""
    count = 0
    for page in file:
        at, link = pdfium.c_int(0), pdfium.FPDF_LINK()
        while pdfium.FPDFLink_Enumerate(page, at, link):
            count += bool(pdfium.FPDFLink_GetDest(file, link))
    return count


@pytest.mark.parametrize("sample", ["english", "chinese"])
def test_every_sentence_is_in_the_file_in_its_order(sample: str) -> None:
    report, text = SAMPLES[sample](), squeezed(read_text(sample_file(sample)))
    at = 0
    for sentence in report.sentences():
        at = text.index(squeezed(sentence.text.strip("| ").split(" | ")[0]), at)


def test_the_words_of_arabic_and_hebrew_can_be_copied() -> None:
    report, text = SAMPLES["arabic"](), read_text(sample_file("arabic"))
    words = {w for s in report.sentences() for w in re.findall(r"[\u0621-\u064a]{3,}", s.text)}
    missing = {word for word in words if word not in text}
    assert len(words) > 25
    assert len(missing) <= 2, missing  # PDFium puts a sign between some letters whose glyphs overlap
    for part in ("المضخات", "SCADA", "12", "2023", "המשאבה", "The English summary says that output rose by 12%."):
        assert part in text


def test_the_numbers_of_citations_are_in_order() -> None:
    prose = read_text(sample_file("english")).split("What the surveys found")[1].split("Limits")[0]
    assert [int(n) for n in re.findall(r"\[(\d+)\]", prose)] == [*range(1, ENGLISH_CITATIONS + 1), 1]


@pytest.mark.parametrize("sample", SAMPLES)
def test_every_citation_links_to_its_entry(sample: str) -> None:
    report = SAMPLES[sample]()
    numbers = sum(len(s.citations) + len(s.passages) for s in report.sentences())
    links = count_links(opened(sample_file(sample)))
    # In the text and in the claim table. In text from right to left, brackets and number are links of their own.
    assert links == 2 * numbers if sample != "arabic" else 2 * numbers <= links <= 6 * numbers


def test_the_outline_has_the_headings_and_the_sources() -> None:
    items = [(i.level, i.get_title()) for i in opened(sample_file("english")).get_toc()]
    assert items[0] == (0, "Pumps: a survey of surveys")
    assert [title for level, title in items if level == 1] == [
        *("What the surveys found", "Flow by year", "Points", "Limits", "Sources", "Claims")
    ]
    assert (2, "S1. Annual pump survey 2011") in items


def test_the_metadata_name_title_author_and_language() -> None:
    data = sample_file("chinese")
    metadata = opened(data).get_metadata_dict()
    assert (metadata["Title"], metadata["Author"]) == ("中国水泵产业研究报告", "litellm:gpt-x")
    assert b"/Lang (zh)" in data
    assert b"/Lang (de-CH)" in written(english_report(), "de-CH")


def test_every_page_has_its_number() -> None:
    file = opened(sample_file("english"))
    assert len(file) > 3
    for number, page in enumerate(file, 1):
        assert page.get_textpage().get_text_range().split()[-1] == str(number)


def test_only_addresses_of_sources_are_links_and_nothing_runs() -> None:
    data = sample_file("english")
    assert set(list_web_links(data)) == {f"https://www.example.org/pumps/{y}?part=1&lang=en" for y in range(2010, 2022)}
    for active in (b"/JavaScript", b"/JS", b"/Launch", b"/EmbeddedFile", b"/AcroForm", b"/AA"):
        assert active not in data
    assert re.findall(rb"/OpenAction (\S)", data) in ([], [b"["]), "a place in the file, and no action"


def test_hostile_text_stays_text() -> None:
    texts = [
        *HOSTILE,
        "**bold** __under__ [x](https://evil.example)",
        "{nb} \ufffe\uffff",
        ") Tj ET (",
        "\\) >> endobj",
    ]
    sections = tuple(hostile_report(text).sections[0] for text in texts)
    data = written(hostile_report("{nb}", sections=sections))
    assert list_web_links(data) == []
    assert b"/JavaScript" not in data
    read = squeezed(read_text(data))
    for text in texts:
        letters = "".join(c for c in text if c.isascii() and c.isalnum())
        assert read.count(letters) >= 3, text


def test_an_address_that_is_not_of_the_web_is_no_link() -> None:
    (citation,) = hostile_report().citations
    citations = tuple(
        replace(citation, number=number, source_id=UUID(int=number), source=SourceDetails(address, is_web=True))
        for number, address in enumerate(["javascript:alert(1)", "file:///etc/passwd", "https://a b.example/"], 1)
    )
    data = written(hostile_report(citations=citations))
    assert "javascript:alert(1)" in read_text(data)
    assert list_web_links(data) == []


def test_a_word_that_is_wider_than_the_page_is_broken() -> None:
    data = written(hostile_report("x" * 5_000))
    file = opened(data)
    assert read_text(data).count("x") >= 5 * 5_000
    for page in file:
        left, _, right, _ = page.get_bbox()
        for one in page.get_objects(filter=[pdfium.FPDF_PAGEOBJ_TEXT]):
            assert left <= one.get_bounds()[0]
            assert one.get_bounds()[2] <= right


def test_a_row_that_is_higher_than_a_page_is_divided_below_its_header() -> None:
    long = " ".join(f"word{n}" for n in range(4_000))
    rows = (Sentence("s1", "| Head | B |", layout=Layout.HEADER), Sentence("s2", f"| {long} | b |", layout=Layout.ROW))
    data = written(hostile_report(sections=(Section("Table", rows),), answer=None, citations=()))
    text = read_text(data)
    assert [int(n) for n in re.findall(r"word(\d+)", text)] == list(range(4_000))
    assert text.count("Head B") > 2


def test_a_table_of_very_many_columns_stays_on_the_page() -> None:
    cells = " | ".join(f"c{n}" for n in range(80))
    rows = (Sentence("s1", f"| {cells} |", layout=Layout.ROW),)
    file = opened(written(hostile_report(sections=(Section("Wide", rows),))))
    assert max(o.get_bounds()[2] for o in file[0].get_objects()) <= file[0].get_width()


def test_characters_that_no_font_shows_are_named() -> None:
    text = read_text(written(hostile_report("Linear B \U00010000 and Latin.")))
    assert "Linear B □ and Latin." in text
    assert "No installed font shows these characters, for which □ stands: U+10000." in text


def test_letters_of_many_scripts_are_shown() -> None:
    words = ["Ωμέγα", "Привет", "你好", "שלום", "हिन्दी", "ไทย", "Tiếng Việt", "→ ≤ ∑", "😀"]
    text = read_text(written(hostile_report(" ; ".join(words), sections=())))
    assert "No installed font" not in text
    for word in words:
        assert squeezed(word)[:2] in squeezed(text), word
