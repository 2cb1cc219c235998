"""Read DOCX documents as Markdown: paragraphs, headings, list items and tables."""

import io
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

from offing.library.extraction import DOCX_MEDIA_TYPE, DocumentRejectedError, ExtractedDocument
from offing.library.publication import Publication, build_publication

MAX_ARCHIVE_ENTRIES = 1_000
MAX_UNPACKED_BYTES = 200 * 2**20
"""Maximum bytes of all unpacked entries together."""
MAX_COMPRESSION_RATIO = 100
"""Maximum ratio of unpacked to packed bytes beyond the first megabyte."""


MAX_REPEATED_CELL_CHARS = 200
"""Maximum code points of a cell that spans rows and is repeated in each of them. A longer text appears only in
the first row.
"""

_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"

_ELEMENT_TEXTS = {f"{_W}tab": " ", f"{_W}ptab": " ", f"{_W}cr": " ", f"{_W}noBreakHyphen": "-"}
"""The text that an element of a run is replaced by, besides text and breaks."""


def read_docx(data: bytes) -> ExtractedDocument:
    """Return the text of a DOCX file. Raises `DocumentRejectedError` for a damaged file or a zip bomb.

    The XML elements of the document are read directly, each once. The objects of python-docx search all styles
    for each paragraph, compare the elements of a run with one another, and list a cell once per column, of
    which a file may claim any number.
    """
    import docx
    from docx.exceptions import PythonDocxError

    check_not_zip_bomb(data)
    try:
        document: Any = docx.Document(io.BytesIO(data))
    except (KeyError, ValueError, zipfile.BadZipFile, SyntaxError, PythonDocxError):
        raise DocumentRejectedError(
            "The DOCX file is damaged.", "Open it in a word processor and save it again."
        ) from None
    marks = _StyleMarks.from_document(document)
    blocks = [block for element in document.element.body for block in _iter_blocks(element, marks)]
    properties = document.core_properties
    named = str(properties.title or "").strip()
    first = next((b.lstrip("# ") for b in blocks if b.startswith("#")), "")
    return ExtractedDocument(
        "\n\n".join(blocks),
        named or first,
        DOCX_MEDIA_TYPE,
        f"docx/1+python-docx-{version('python-docx')}",
        _read_publication(properties),
    )


def _read_publication(properties: Any) -> Publication:
    """Return the author and the date of creation. Properties that python-docx wrote for its template are no such."""
    try:
        created = properties.created
    except ValueError:
        created = None  # not a date
    author = str(properties.author or "")
    is_template = author == "python-docx"
    return build_publication([author], [created.date().isoformat()] if created and not is_template else [])


@dataclass(frozen=True, slots=True)
class _StyleMarks:
    """The Markdown mark of each paragraph style, by style id."""

    by_id: Mapping[str, str]
    default: str
    """Mark of a paragraph whose style is missing or unknown."""

    @classmethod
    def from_document(cls, document: Any) -> "_StyleMarks":
        from docx.enum.style import WD_STYLE_TYPE

        kind, by_id = WD_STYLE_TYPE.PARAGRAPH, dict[str, str]()
        for style in document.styles:
            if style.type == kind and style.style_id:
                by_id.setdefault(style.style_id, _mark_for_style(style.name or ""))
        usual = document.styles.default(kind)
        return cls(by_id, _mark_for_style(usual.name or "") if usual is not None else "")

    def get_mark(self, style_id: str | None) -> str:
        return self.by_id.get(style_id or "", self.default)


def check_not_zip_bomb(data: bytes) -> None:
    """Raise an error for a zip bomb, found from the archive's own directory before anything is unpacked."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            entries = archive.infolist()
    except zipfile.BadZipFile:
        raise DocumentRejectedError(
            "The DOCX file is damaged.", "Open it in a word processor and save it again."
        ) from None
    unpacked = sum(e.file_size for e in entries)
    if (
        len(entries) > MAX_ARCHIVE_ENTRIES
        or unpacked > MAX_UNPACKED_BYTES
        or unpacked > 2**20 + MAX_COMPRESSION_RATIO * len(data)
    ):
        raise DocumentRejectedError(
            "The uncompressed DOCX file is too large.", "Remove embedded objects, or save it as PDF."
        )


def _iter_blocks(element: Any, marks: _StyleMarks) -> Iterator[str]:
    if element.tag == f"{_W}tbl":
        yield "\n".join(filter(None, _iter_rows(element)))
    elif element.tag == f"{_W}p" and (text := " ".join("".join(_paragraph_text(element)).split())):
        yield marks.get_mark(element.style) + text


def _mark_for_style(style: str) -> str:
    """Return the Markdown mark for the English name of a paragraph style, which files in every language contain."""
    if style == "Title":
        return "# "
    if style.startswith("Heading ") and style[8:].isdigit():
        return "#" * min(int(style[8:]), 6) + " "
    return "- " if style.startswith("List") else ""


def _iter_rows(table: Any) -> Iterator[str]:
    """Yield the rows of a table.

    A cell that spans columns counts once; one that spans rows is repeated in each row.
    """
    above: dict[int, str] = {}
    for row in table.iterchildren(f"{_W}tr"):
        here: dict[int, str] = {}
        column, cells = 0, list[str]()
        for cell in row.iterchildren(f"{_W}tc"):
            goes_on = cell.vMerge == "continue"
            text = above.get(column, "") if goes_on else _cell_text(cell)
            cells.append(text)
            here[column] = text if len(text) <= MAX_REPEATED_CELL_CHARS else ""
            column += _column_span(cell)
        above = here
        yield f"| {' | '.join(cells)} |" if any(cells) else ""


def _cell_text(cell: Any) -> str:
    return " ".join(" ".join("".join(_paragraph_text(part)) for part in cell.iterchildren(f"{_W}p")).split())


def _paragraph_text(paragraph: Any) -> Iterator[str]:
    """Yield the text of the runs and links of a paragraph, with any white space as a space."""
    for part in paragraph:
        if part.tag == f"{_W}hyperlink":
            for run in part.iterchildren(f"{_W}r"):
                yield from map(_sign_text, run)
        elif part.tag == f"{_W}r":
            yield from map(_sign_text, part)


def _sign_text(element: Any) -> str:
    if element.tag == f"{_W}t":
        return element.text or ""
    if element.tag == f"{_W}br":
        return " " if element.get(f"{_W}type") in (None, "textWrapping") else ""
    return _ELEMENT_TEXTS.get(element.tag, "")


def _column_span(cell: Any) -> int:
    """Return the number of columns that the cell claims to span."""
    try:
        return max(1, int(cell.grid_span))
    except ValueError:
        return 1
