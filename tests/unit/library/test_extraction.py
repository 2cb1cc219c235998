"""From bytes to text, and why a file is rejected."""

import io
import zipfile

import docx
import pytest
from fpdf import FPDF
from PIL import Image

from offing.library.extraction import MAX_FILE_BYTES, DocumentRejectedError, extract_text

WORDS = "Pools keep sockets open so that later requests need no new handshake. "


def a_pdf(*pages: str, title: str = "") -> bytes:
    pdf = FPDF()
    pdf.set_title(title)
    for page in pages:
        pdf.add_page()
        pdf.set_font("Helvetica", size=11)
        pdf.multi_cell(0, 5, page)
    return bytes(pdf.output())


def _a_pdf_with_a_scanned_page() -> bytes:
    pdf = FPDF()
    pdf.add_page()
    pdf.set_font("Helvetica", size=11)
    pdf.multi_cell(0, 5, WORDS * 3)
    pdf.add_page()
    pdf.image(Image.new("RGB", (40, 40), "white"), 10, 10)
    return bytes(pdf.output())


def a_docx() -> bytes:
    document = docx.Document()
    document.add_heading("On pools", 0)
    document.add_heading("Keeping", 1)
    document.add_paragraph(WORDS)
    document.add_paragraph("an item", style="List Bullet")
    table = document.add_table(1, 2)
    table.cell(0, 0).text, table.cell(0, 1).text = "size", "10"
    out = io.BytesIO()
    document.save(out)
    return out.getvalue()


def rejection(data: bytes, name: str) -> DocumentRejectedError:
    with pytest.raises(DocumentRejectedError) as caught:
        extract_text(data, name)
    assert caught.value.remedy
    return caught.value


def test_markdown_stays_as_written() -> None:
    text = "# Title\n\nSome *text* with caf\u00e9 and \U0001f600.\n"
    result = extract_text(text.encode(), "a.md")
    assert (result.text, result.title, result.media_type) == (text, "Title", "text/markdown")


def test_front_matter_names_a_document() -> None:
    assert extract_text(b"---\ntitle: 'Named here'\n---\n\n# Other\n\ntext", "a.md").title == "Named here"


def test_line_ends_become_one_kind() -> None:
    assert extract_text(b"one\r\ntwo\rthree", "a.txt").text == "one\ntwo\nthree"


@pytest.mark.parametrize(
    ("data", "encoding"),
    [
        ("caf\u00e9".encode(), "utf-8"),
        (b"\xef\xbb\xbfcaf\xc3\xa9", "utf-8"),
        (b"\xff\xfe" + "caf\u00e9".encode("utf-16-le"), "utf-16-le"),
        (b"\xfe\xff" + "caf\u00e9".encode("utf-16-be"), "utf-16-be"),
        ("caf\u00e9".encode("latin-1"), "cp1252"),
    ],
)
def test_encodings_are_told_apart(data: bytes, encoding: str) -> None:
    text = extract_text(data, "a.txt")
    assert text.text == "caf\u00e9"
    assert text.extractor.endswith(encoding)


def test_what_postgres_cannot_store_is_taken_out() -> None:
    lone = "a\ud800b".encode("utf-16-le", "surrogatepass")
    assert extract_text(b"\xff\xfe" + lone, "a.txt").text in ("ab", "a\ufffdb")
    assert extract_text(b"one\x00two " + b"text " * 500, "a.txt").text.startswith("onetwo")


def test_a_pdf_gives_its_paragraphs_and_title() -> None:
    text = extract_text(a_pdf(WORDS * 4, title="On Pools"), "a.pdf")
    assert text.title == "On Pools"
    assert text.text == (WORDS * 4).strip()
    assert text.extractor.startswith("pdf/4+pypdfium2-")


def test_lines_that_head_every_page_are_left_out() -> None:
    pages = [
        f"Journal of Pools\n\n{n} {WORDS * 4} Page {n} says {n * 7} things. {WORDS * 2}\n\n{n}" for n in range(1, 7)
    ]
    text = extract_text(a_pdf(*pages), "a.pdf").text
    assert "Journal" not in text
    assert "says 35 things" in text


def test_a_section_number_makes_a_heading() -> None:
    text = extract_text(a_pdf(f"{WORDS * 3}\n\n2.1 Keeping sockets\n\n{WORDS * 3}"), "a.pdf").text
    assert "\n\n## 2.1 Keeping sockets\n\n" in text


@pytest.mark.parametrize("line", ["5 Years", "12 Months ended June", "30 September 2023", "1,200 employees worldwide"])
def test_a_number_with_its_unit_makes_no_heading(line: str) -> None:
    text = extract_text(a_pdf(f"{WORDS * 3}\n\n{line}\n\n{WORDS * 3}"), "a.pdf").text
    assert line in text
    assert "## " not in text


@pytest.mark.parametrize("title", ["0001193125-24-012345", "aapl-20230930", "10-K_2023", "untitled"])
def test_an_accession_number_or_a_file_name_is_no_title(title: str) -> None:
    text = extract_text(a_pdf(f"Annual Report of Pools\n\n{WORDS * 3}", title=title), "a.pdf")
    assert text.title == "Annual Report of Pools"


def test_a_title_with_a_number_among_its_words_is_kept() -> None:
    assert extract_text(a_pdf(WORDS * 3, title="Annual Report 2023"), "a.pdf").title == "Annual Report 2023"


def test_a_page_that_is_an_image_is_named_where_others_have_text() -> None:
    text = extract_text(_a_pdf_with_a_scanned_page(), "a.pdf").text
    assert "[Page 2 is an image without text. It was not read.]" in text
    assert "Page 1 is" not in text


def test_a_pdf_without_text_says_what_to_do() -> None:
    assert "OCR" in rejection(a_pdf(""), "scan.pdf").remedy


def test_a_damaged_pdf_is_rejected() -> None:
    assert "damaged" in rejection(b"%PDF-1.7 nothing more", "a.pdf").problem


def test_a_document_page_keeps_code_lists_and_tables() -> None:
    page = (
        f"<!doctype html><html><head><title>Pool - docs</title></head><body><nav>menu</nav><main><h1>Pool</h1>"
        f"<p>{WORDS * 4}</p><pre>const a = 1\n  b()</pre><ul><li>one</li><li>two</li></ul>"
        f"<table><tr><th>size</th><td>10</td></tr></table></main><footer>foot</footer></body></html>"
    )
    text = extract_text(page.encode(), "a.html")
    assert text.title == "Pool"
    assert "```\nconst a = 1\n  b()\n```" in text.text
    assert "- one\n- two" in text.text
    assert "| size | 10 |" in text.text
    assert "menu" not in text.text
    assert "foot" not in text.text


def test_a_page_without_a_marked_main_part_is_not_emptied() -> None:
    page = f"<html><body><div><h2>Options</h2><dl><dt>size</dt><dd>{WORDS}</dd></dl></div></body></html>"
    assert "later requests" in extract_text(page.encode(), "a.htm").text


def test_a_page_in_its_own_encoding() -> None:
    page = f"<html><head><meta charset='iso-8859-2'></head><body><p>\u017elu\u0165ou\u010dk\u00fd {WORDS}</p>"
    assert "\u017elu\u0165ou\u010dk\u00fd" in extract_text(page.encode("iso-8859-2"), "a.html").text


def test_deeply_nested_markup_is_read_and_absurdly_nested_markup_rejected() -> None:
    assert "later requests" in extract_text(f"<html><body>{'<div>' * 1_000}{WORDS}".encode(), "a.html").text
    assert (
        rejection(f"<html><body>{'<div>' * 50_000}{WORDS}".encode(), "a.html").problem == "The file contains no text."
    )


def test_a_docx_gives_headings_lists_and_tables() -> None:
    text = extract_text(a_docx(), "a.docx")
    assert text.title == "On pools"
    assert text.text == f"# On pools\n\n# Keeping\n\n{WORDS.strip()}\n\n- an item\n\n| size | 10 |"


def test_an_archive_that_unpacks_to_far_more_is_rejected_before_it_is_unpacked() -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("word/document.xml", b"0" * 60_000_000)
    assert "uncompressed" in rejection(out.getvalue(), "a.docx").problem


def test_type_is_told_by_content() -> None:
    assert extract_text(a_pdf(WORDS), "wrong.md").media_type == "application/pdf"
    assert extract_text(f"<!DOCTYPE html><body><p>{WORDS}".encode(), "wrong.txt").media_type == "text/html"


@pytest.mark.parametrize(
    ("data", "name"),
    [
        (b"", "empty.txt"),
        (b" \n\t", "blank.md"),
        (bytes(range(256)) * 40, "picture.md"),
        (b"PK\x03\x04rest", "things.zip"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"x" * 100, "old.doc"),
        (b"x" * (MAX_FILE_BYTES + 1), "huge.txt"),
    ],
)
def test_what_cannot_be_read_is_rejected(data: bytes, name: str) -> None:
    assert rejection(data, name).problem
