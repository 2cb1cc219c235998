"""Read PDF documents: paragraphs in reading order, tables as Markdown, without running headers and footers."""

import re
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

from offing.library.extraction import DocumentRejectedError, ExtractedDocument
from offing.library.page_starts import PageStarts, convert_text, drop_repeated_pages
from offing.library.pdf.geometry import Element
from offing.library.pdf.page_layout import analyze_layout, needs_layout
from offing.library.pdf.page_reader import HYPHENS, PageReader, join_surrogates
from offing.library.pdf.paragraphs import Block, join_page, join_sentences, remove_headers_and_footers
from offing.library.pdf.publication import read_publication
from offing.library.pdf.tables import continue_tables
from offing.library.pdf.title import MAX_TITLE_CHARS, find_type_title, is_form_line, is_usable_title

MAX_PAGES = 3_000

IMAGE_NOTE = "[Page {} is an image without text. It was not read.]"
"""Stands for a page that was scanned without text recognition, in a document with other pages that have text."""

_SOFT_HYPHEN = re.compile(rf"[{HYPHENS}\u00ad][ \t]*")


def read_pdf(data: bytes) -> ExtractedDocument:
    """Return the text of a PDF. Raises `DocumentRejectedError` for an encrypted, damaged or too long file."""
    import pypdfium2

    try:
        document = pypdfium2.PdfDocument(data)
    except pypdfium2.PdfiumError as error:
        if "password" in str(error).lower():
            raise DocumentRejectedError("The PDF is protected by a password.", "Save it without a password.") from None
        raise DocumentRejectedError("The PDF is damaged.", "Save or download it again.") from None
    with document:
        if len(document) > MAX_PAGES:
            raise DocumentRejectedError(
                f"The PDF has {len(document):,} pages. The maximum is {MAX_PAGES:,}.", "Split it."
            )
        pages = [read_page(document, number) for number in range(len(document))]
        blank = [n for n, elements in enumerate(pages) if not elements]
        images = {n for n in blank if len(blank) < len(pages) and _has_image(document, n)}
        publication = read_publication(document, data)
        named = str(document.get_metadata_value("Title") or "")[:MAX_TITLE_CHARS].strip()  # pyright: ignore
    pages = remove_headers_and_footers(pages)
    first = next((page for page in pages if page), list[Element]())
    text, page_starts = write_pages(pages, images)
    title = named if is_usable_title(named) else find_type_title(first) or _find_first_line(text)
    extractor = f"pdf/4+pypdfium2-{version('pypdfium2')}"
    return ExtractedDocument(text, title, "application/pdf", extractor, publication, page_starts)


def read_page(document: Any, number: int) -> list[Element]:
    """Return the lines and tables of a page of a `pypdfium2.PdfDocument`. Empty if the page has no text."""
    page = PageReader(document, number)
    try:
        lines = page.read_lines()
        words = page.read_words() if needs_layout(lines, page.has_wide_gap) else []
        elements = analyze_layout(words, page.read_rulings()) if words else None
        return [*lines] if elements is None else elements
    finally:
        page.close()


def _has_image(document: Any, number: int) -> bool:
    from pypdfium2.raw import FPDF_PAGEOBJ_IMAGE

    page = document[number]
    try:
        return any(page.get_objects(filter=[FPDF_PAGEOBJ_IMAGE]))
    finally:
        page.close()


def write_pages(pages: Sequence[list[Element]], images: set[int]) -> tuple[str, PageStarts]:
    """Return the text of all pages, and where in it each page begins. A page that is an image ends a paragraph."""
    continue_tables(pages)
    blocks = list[Block]()
    for number, page in enumerate(pages):
        blocks.extend(join_page(page, number + 1))
        if number in images:
            blocks.append(Block(IMAGE_NOTE.format(number + 1), "image", ((0, number + 1),)))
    texts, starts, length = list[str](), list[tuple[int, int]](), 0
    for block in join_sentences(blocks):
        text, block_starts = convert_text(block.text, block.page_starts, _finish_text)
        texts.append(text)
        starts.extend((length + at, page) for at, page in block_starts)
        length += len(text) + 2
    return "\n\n".join(texts), drop_repeated_pages(starts)


def _finish_text(text: str) -> str:
    """Return a text without the marks of words that were broken, with one character per code point."""
    return join_surrogates(_SOFT_HYPHEN.sub("", text))


def _find_first_line(text: str) -> str:
    """Return the first line of a text. Empty if it is a row of a table, a form's line or too long for a title."""
    line = text.split("\n", 1)[0].strip("# ")
    return line if 3 < len(line) <= 200 and not (line.startswith("|") or is_form_line(line)) else ""
