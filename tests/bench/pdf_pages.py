"""Write `docs/documents.md`: pages of generated PDFs as pictures, beside the texts that are extracted from them.

python -m tests.bench.pdf_pages
"""

import io
from pathlib import Path
from typing import Any

import pypdfium2
from PIL import ImageOps

from offing.library.extraction import extract_text
from tests.unit.library.pdf_pages import SAMPLES

DOCS = Path(__file__).parents[2] / "docs"
PICTURE_SCALE = 1.0
"""Pixels per point."""
MARGIN_PIXELS = 16

_INTRODUCTION = """# What is extracted from a PDF

Each picture is a page of a generated PDF. The text below it is what the [document library](design/document-library.md)
stores, searches and cites. `python -m tests.bench.pdf_pages` writes this page.
"""
_CAPTIONS = {
    "annual-report": (
        "A statement without drawn cells",
        "The years and the text above them are the header. Currency signs are joined with their numbers, and a label "
        "over two lines is one row.",
    ),
    "paper": (
        "Two columns with a footnote and a table",
        "The columns are read one after the other. The footnote follows the paragraph that continues in the second "
        "column.",
    ),
    "ruled-table": (
        "A drawn table over two pages",
        "The lines of a cell are joined. The part on the second page, which has no header there, gets the header of "
        "the first page.",
    ),
}


def main() -> None:
    for name, build in SAMPLES.items():
        for number, picture in enumerate(render_pages(build()), 1):
            (DOCS / "images" / f"pdf-{name}-{number}.png").write_bytes(picture)
    (DOCS / "documents.md").write_text(render_document())


def render_document() -> str:
    """Return the text of `docs/documents.md`."""
    parts = [_INTRODUCTION]
    for name, build in SAMPLES.items():
        heading, caption = _CAPTIONS[name]
        data = build()
        with pypdfium2.PdfDocument(data) as document:
            numbers = range(1, len(document) + 1)
        pictures = "\n".join(f"![{heading}, page {number}](images/pdf-{name}-{number}.png)" for number in numbers)
        text = extract_text(data, f"{name}.pdf").text
        parts.append(f"## {heading}\n\n{caption}\n\n{pictures}\n\n~~~text\n{text}\n~~~\n")
    return "\n".join(parts)


def render_pages(data: bytes) -> list[bytes]:
    """Return a PNG per page, without the white space around its text."""
    with pypdfium2.PdfDocument(data) as document:
        return [_render_page(page) for page in document]


def _render_page(page: Any) -> bytes:
    image = page.render(scale=PICTURE_SCALE).to_pil().convert("L")
    left, upper, right, lower = ImageOps.invert(image).getbbox() or (0, 0, 1, 1)
    box = left - MARGIN_PIXELS, upper - MARGIN_PIXELS, right + MARGIN_PIXELS, lower + MARGIN_PIXELS
    out = io.BytesIO()
    image.crop(box).quantize(16).save(out, "PNG", optimize=True)
    return out.getvalue()


if __name__ == "__main__":
    main()
