"""Who wrote a document and when: what each format states, and what is no author and no date."""

import io
import zipfile
from datetime import UTC, datetime
from typing import Any

import docx
import pytest
from fpdf import FPDF

from offing.library.extraction import extract_text
from offing.library.publication import (
    MAX_AUTHOR_CHARS,
    Publication,
    clean_author,
    join_authors,
    normalize_published,
)

WORDS = "Pools keep sockets open so that later requests need no new handshake. "
JSON_LD = '<script type="application/ld+json">{}</script>'


def read_page(head: str, body: str = "") -> Publication:
    page = f"<!doctype html><html><head>{head}</head><body><main><p>{WORDS * 4}</p>{body}</main></body></html>"
    return extract_text(page.encode(), "page.html").publication


def read_pdf(author: str = "", created: datetime | None = None, xmp: str = "") -> Publication:
    pdf = FPDF()
    pdf.set_author(author)
    pdf.set_creation_date(created or datetime(2021, 3, 4, 5, 6, tzinfo=UTC))
    pdf.add_page()
    pdf.set_font("helvetica", size=12)
    pdf.multi_cell(0, 5, WORDS)
    packet = f"<x:xmpmeta>{xmp}</x:xmpmeta>".encode() if xmp else b""
    return extract_text(bytes(pdf.output()) + packet, "a.pdf").publication


@pytest.mark.parametrize(
    ("statement", "published"),
    [
        ("2024-03-05", "2024-03-05"),
        ("2024-03-05T08:00:00+08:00", "2024-03-05"),
        ("2024/3/5", "2024-03-05"),
        ("20240305", "2024-03-05"),
        ("2024-03", "2024-03"),
        ("2024-03-00", "2024-03"),
        ("2024", "2024"),
        ("5 March 2024", "2024-03-05"),
        ("Tue, 05 Mar 2024 10:00:00 GMT", "2024-03-05"),
        ("March 2024", "2024-03"),
        ("03/04/2024", "2024"),
        ("25/04/2024", "2024-04-25"),
        ("  2024-03-05\u202e\x00 ", "2024-03-05"),
        ("", ""),
        ("yesterday", ""),
        ("2019-2020", ""),
        ("2024-02-31", ""),
        ("2024-13-01", ""),
        ("0001-01-01", ""),
        ("1970-01-01T00:00:00Z", ""),
        ("9999-12-31", ""),
        ("1709600000", ""),
        ("<script>2024</script>", ""),
        ("2" * 100_000, ""),
    ],
)
def test_a_date_has_one_form_and_what_is_none_is_dropped(statement: str, published: str) -> None:
    assert normalize_published(statement) == published


@pytest.mark.parametrize(
    ("statement", "author"),
    [
        ("Ann Lee", "Ann Lee"),
        ("By Ann Lee", "Ann Lee"),
        ("Colby Ann", "Colby Ann"),
        ("Ann Lee <ann@example.org>", "Ann Lee"),
        ("Ann\x00 \u202eLee\n\u200b", "Ann Lee"),
        ("Sean O'Brien & Zo\u00eb", "Sean O'Brien & Zo\u00eb"),
        ("\u5f20\u4f1f", "\u5f20\u4f1f"),
        ("World Health Organization", "World Health Organization"),
        ("admin", ""),
        ("Administrator", ""),
        ("jsmith", ""),
        ("a813704", ""),
        ("Microsoft Office User", ""),
        ("Adobe InDesign 18.1", ""),
        ("python-docx", ""),
        ("Unknown", ""),
        ("https://example.org/ann", ""),
        ("ann@example.org", ""),
        ("C:\\Users\\Ann", ""),
        ("{{ page.author }}", ""),
        ("[object Object]", ""),
        ("<script>alert(1)</script>", "alert(1)"),
        ("Ann <<Lee", ""),
        ("12345 - 67", ""),
    ],
)
def test_an_author_is_a_name_and_no_program_account_or_address(statement: str, author: str) -> None:
    assert clean_author(statement) == author


def test_authors_are_joined_and_too_many_are_cut_between_names() -> None:
    assert join_authors(["Ann Lee", "Bo Chen", "Ann Lee", "admin"]) == "Ann Lee, Bo Chen"
    assert join_authors(["Lee, Ann", "Chen, Bo"]) == "Lee, Ann; Chen, Bo"
    assert join_authors(["Ann Lee; Bo Chen"]) == "Ann Lee, Bo Chen"
    many = join_authors([f"Author Number {n}" for n in range(1_000)])
    assert many.endswith("Author Number 10 et al.")
    assert len(many) <= MAX_AUTHOR_CHARS
    assert join_authors(["A" + "x" * 100_000]) == ""


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        (
            "<meta property='article:published_time' content='2024-03-05T08:00:00Z'>"
            "<meta property='article:modified_time' content='2025-01-01'><meta name='author' content='Ann Lee'>",
            Publication("Ann Lee", "2024-03-05"),
        ),
        (
            "<meta name='citation_author' content='Lee, Ann'><meta name='citation_author' content='Chen, Bo'>"
            "<meta name='citation_publication_date' content='2019/03'>",
            Publication("Lee, Ann; Chen, Bo", "2019-03"),
        ),
        ("<meta name=DC.creator content='Ann Lee'><meta name=DC.date content='2019'>", Publication("Ann Lee", "2019")),
        (
            JSON_LD.format(
                '{"@context":"https://schema.org","@graph":[{"@type":"WebPage","datePublished":"2020-01-01"},'
                '{"@type":["Article","NewsArticle"],"datePublished":"2024-03-05","dateModified":"2025-01-01",'
                '"author":[{"@id":"#ann"},"Bo Chen"],"comment":{"@type":"Comment","datePublished":"2026-01-01"}},'
                '{"@type":"Person","@id":"#ann","name":"Ann O&#039;Lee"}]}'
            ),
            Publication("Ann O'Lee, Bo Chen", "2024-03-05"),
        ),
        (
            JSON_LD.format('{"@type":"Article","author":{"name":"admin"}}') + "<meta name='author' content='Ann Lee'>",
            Publication("Ann Lee", ""),
        ),
        (
            "<meta property='article:author' content='https://example.org/ann'><meta name='byl' content='By Ann Lee'>",
            Publication("Ann Lee", ""),
        ),
        ("<meta name=last-modified content=2024><meta property=og:updated_time content=2024-03-05>", Publication()),
        (JSON_LD.format('{"@type":"Organization","datePublished":"2024-03-05"}'), Publication()),
        (JSON_LD.format('{"@type": "Article", '), Publication()),
        (JSON_LD.format('{"@type":"Article","datePublished":5,"author":[[{"name":{}}],null]}'), Publication()),
    ],
)  # fmt: skip
def test_a_page_states_its_authors_and_its_date_of_publication(head: str, expected: Publication) -> None:
    assert read_page(head) == expected


def test_a_marked_time_is_the_date_of_a_page_that_states_no_other() -> None:
    assert read_page(
        "", "<time>2020-01-01</time><time itemprop=datePublished datetime=2024-03-05>May</time>"
    ) == Publication("", "2024-03-05")


def test_nested_data_of_a_hostile_page_is_read_up_to_a_limit() -> None:
    lists = "[" * 500 + "]" * 500
    wide = "[" + ",".join(['{"@type":"Person"}'] * 20_000) + ',{"@type":"Article","datePublished":"2024-03-05"}]'
    assert read_page(JSON_LD.format(lists) + JSON_LD.format(wide)) == Publication()


def test_a_pdf_states_its_author_and_when_it_was_created() -> None:
    assert read_pdf("Ann Lee; Bo Chen") == Publication("Ann Lee, Bo Chen", "2021-03-04")
    assert read_pdf("Microsoft Word", datetime(1980, 1, 1, tzinfo=UTC)) == Publication("", "")


def test_metadata_of_a_pdf_gives_the_date_of_publication_and_that_of_an_image_does_not() -> None:
    own = (
        '<rdf:Description xmlns:pdf="http://ns.adobe.com/pdf/1.3/">'
        "<prism:publicationDate>2019-05</prism:publicationDate>"
        "<dc:creator><rdf:Seq><rdf:li>Ann Lee</rdf:li><rdf:li>Bo &amp; Co</rdf:li></rdf:Seq></dc:creator>"
        "</rdf:Description>"
    )
    assert read_pdf(xmp=own) == Publication("Ann Lee, Bo & Co", "2019-05")
    assert read_pdf(xmp=own.replace("ns.adobe.com/pdf", "ns.adobe.com/photo")) == Publication("", "2021-03-04")


@pytest.mark.parametrize(
    ("front", "expected"),
    [
        ("title: Pools\nauthor: Ann Lee\ndate: 2024-03-05", Publication("Ann Lee", "2024-03-05")),
        ("authors: [Ann Lee, 'Bo Chen']\ndate: 2020\npublished: 2024-03", Publication("Ann Lee, Bo Chen", "2024-03")),
        ("authors:\n  - name: Ann Lee\n    email: x\n  - Bo Chen\nlastmod: 2024", Publication("Ann Lee, Bo Chen", "")),
        ('author:\n  name: "Ann Lee"\ntags:\n  - Pools', Publication("Ann Lee", "")),
        ("title: Pools", Publication()),
    ],
)  # fmt: skip
def test_front_matter_states_author_and_date(front: str, expected: Publication) -> None:
    text = f"---\r\n{front}\r\n---\r\n\r\n# Pools\r\n\r\n{WORDS}\r\nauthor: Nobody Else\r\n"
    assert extract_text(text.encode(), "a.md").publication == expected


def test_fields_of_restructured_text_state_author_and_date_and_plain_text_states_none() -> None:
    text = f"Pools\n=====\n\n:Author: Ann Lee\n:Date: 2024-03-05\n\n{WORDS}\n"
    assert extract_text(text.encode(), "a.rst").publication == Publication("Ann Lee", "2024-03-05")
    assert extract_text(text.encode(), "a.txt").publication == Publication()


def write_docx(**properties: Any) -> bytes:
    document = docx.Document()
    document.add_paragraph(WORDS)
    for name, value in properties.items():
        setattr(document.core_properties, name, value)
    file = io.BytesIO()
    document.save(file)
    return file.getvalue()


def test_a_word_document_states_its_author_and_when_it_was_created() -> None:
    dates = {"created": datetime(2024, 3, 5, tzinfo=UTC), "modified": datetime(2025, 1, 1, tzinfo=UTC)}
    stated = write_docx(author="Ann Lee", **dates)
    assert extract_text(stated, "a.docx").publication == Publication("Ann Lee", "2024-03-05")


def test_a_word_document_of_a_template_states_nothing() -> None:
    assert extract_text(write_docx(), "a.docx").publication == Publication()


def test_a_word_document_with_a_damaged_date_is_read() -> None:
    source = zipfile.ZipFile(io.BytesIO(write_docx(author="Ann Lee")))
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as target:
        for entry in source.infolist():
            body = source.read(entry)
            target.writestr(entry, body.replace(b"2013-12-23T23:15:00Z", b"not a date at all!!"))
    assert extract_text(file.getvalue(), "a.docx").publication == Publication("Ann Lee", "")
