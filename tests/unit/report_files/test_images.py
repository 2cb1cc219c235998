"""Images that the code of a run has written, in the files of its report."""

import io
import zlib
from typing import Any

import docx
import pypdfium2
import pytest

from offing.core.report_document import ReportDocument, build_report_document
from offing.core.report_formats import render_html
from offing.core.report_image import (
    MAX_IMAGE_BYTES,
    MAX_IMAGE_PIXELS,
    NO_IMAGES,
    PNG_START,
    ImageSelection,
    ReportImage,
    find_png_size,
)
from offing.report_files.docx_writer import write_docx
from offing.report_files.pdf_writer import write_pdf
from tests.unit.report_files.sample_reports import MARCH, arabic_report


def a_png(width: int = 300, height: int = 200) -> bytes:
    """A gray image."""
    rows = (b"\0" + b"\x80" * width) * height
    header = width.to_bytes(4) + height.to_bytes(4) + b"\x08\0\0\0\0"
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(rows)), (b"IEND", b"")]
    return PNG_START + b"".join(
        len(body).to_bytes(4) + kind + body + zlib.crc32(kind + body).to_bytes(4) for kind, body in chunks
    )


def selected(*images: ReportImage) -> ImageSelection:
    selection = NO_IMAGES
    for image in images:
        selection = selection.adding(image)
    return selection


def a_document(*images: ReportImage) -> ReportDocument:
    document = build_report_document(arabic_report(), MARCH, None, selected(*images))
    return ReportDocument.model_validate_json(document.model_dump_json())


def read_pdf(document: ReportDocument) -> tuple[str, int]:
    """Text of all pages, and the number of images."""
    file: Any = pypdfium2.PdfDocument(write_pdf(document))
    text = " ".join(page.get_textpage().get_text_range() for page in file)
    is_image = [one.type == pypdfium2.raw.FPDF_PAGEOBJ_IMAGE for page in file for one in page.get_objects()]
    return text, sum(is_image)


def read_docx(document: ReportDocument) -> tuple[str, int]:
    file: Any = docx.Document(io.BytesIO(write_docx(document)))
    return "\n".join(one.text for one in file.paragraphs), len(file.inline_shapes)


@pytest.mark.parametrize("read", [read_pdf, read_docx])
def test_images_are_in_the_file_with_their_names(read: Any) -> None:
    text, count = read(a_document(ReportImage("growth.png", a_png()), ReportImage("tall.png", a_png(20, 4000))))
    assert count == 2
    assert "growth.png" in text
    assert "Images made by code" in text


@pytest.mark.parametrize("read", [read_pdf, read_docx])
@pytest.mark.parametrize("kept_bytes", [24, 60])
def test_a_damaged_image_is_named_and_the_file_is_written(read: Any, kept_bytes: int) -> None:
    text, count = read(a_document(ReportImage("broken.png", a_png()[:kept_bytes]), ReportImage("ok.png", a_png())))
    assert "ok.png" in text
    assert count == 1 or (count == 2 and read is read_docx)  # python-docx reads no more than the header


@pytest.mark.parametrize(
    "data", [b"<svg/>", b"", PNG_START, a_png(50_000, 1)[:16] + (50_000).to_bytes(4) * 2, b"\0" * (MAX_IMAGE_BYTES + 1)]
)
def test_what_is_no_image_or_too_large_is_left_out_and_named(data: bytes) -> None:
    document = a_document(ReportImage("plot.svg", data))
    assert "plot.svg" in read_pdf(document)[0]
    assert read_pdf(document)[1] == 0
    assert "not in this file" in read_docx(document)[0]


def test_images_together_stay_within_the_limit_of_a_file() -> None:
    large = a_png()[:24] + b"\0" * (MAX_IMAGE_BYTES - 24)
    selection = selected(*(ReportImage(f"{number}.png", large) for number in range(4)))
    assert ([image.name for image in selection.images], selection.left_out) == (["0.png", "1.png"], ("2.png", "3.png"))


def test_the_size_of_an_image_is_read_from_its_header() -> None:
    assert find_png_size(a_png(7, 9)) == (7, 9)
    assert find_png_size(a_png(0, 9)) is None
    side = int(MAX_IMAGE_PIXELS**0.5) + 1
    assert find_png_size(a_png()[:16] + side.to_bytes(4) * 2) is None


def test_a_page_of_html_contains_its_images_and_their_names_stay_text() -> None:
    page = render_html(arabic_report(), selected(ReportImage('"><script>.png', a_png())))
    assert '<img src="data:image/png;base64,iVBOR' in page
    assert 'alt="&quot;&gt;&lt;script&gt;.png"' in page
    assert "<script>" not in page


def test_a_report_without_images_has_no_section_for_them() -> None:
    assert "Images made by code" not in render_html(arabic_report())
    assert "Images made by code" not in read_docx(a_document())[0]
