"""The text of a DOCX document as Markdown: paragraphs, headings, list items and tables."""

import io
import zipfile
from collections.abc import Iterator
from importlib.metadata import version
from typing import Any

from offing.library.extraction import DOCX, Extracted, Refused

MOST_ENTRIES = 1_000
MOST_UNPACKED = 200 * 2**20
"""Bytes of all entries together."""
MOST_RATIO = 100
"""Of unpacked to packed, past the first megabyte."""


def read_docx(data: bytes) -> Extracted:
    """Raises `Refused` for a file that is damaged, or that would unpack to far more than it is."""
    import docx
    from docx.exceptions import PythonDocxError

    refuse_bomb(data)
    try:
        document: Any = docx.Document(io.BytesIO(data))
    except (KeyError, ValueError, zipfile.BadZipFile, SyntaxError, PythonDocxError):
        raise Refused("The DOCX file is damaged.", "Open it in a word processor and save it again.") from None
    blocks = [block for part in document.iter_inner_content() for block in _blocks(part)]
    named = str(document.core_properties.title or "").strip()
    first = next((b.lstrip("# ") for b in blocks if b.startswith("#")), "")
    return Extracted("\n\n".join(blocks), named or first, DOCX, f"docx/1+python-docx-{version('python-docx')}")


def refuse_bomb(data: bytes) -> None:
    """Look at an archive's own table before anything in it is unpacked."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            entries = archive.infolist()
    except zipfile.BadZipFile:
        raise Refused("The DOCX file is damaged.", "Open it in a word processor and save it again.") from None
    unpacked = sum(e.file_size for e in entries)
    if len(entries) > MOST_ENTRIES or unpacked > MOST_UNPACKED or unpacked > 2**20 + MOST_RATIO * len(data):
        raise Refused("The DOCX file unpacks to far more than it may.", "Remove what is embedded in it, or save a PDF.")


def _blocks(part: Any) -> Iterator[str]:
    if hasattr(part, "rows"):
        rows = [_row(row) for row in part.rows]
        yield "\n".join(row for row in rows if row)
    elif text := " ".join(part.text.split()):
        yield _mark(part.style.name if part.style is not None else "") + text


def _mark(style: str) -> str:
    """The Markdown sign for a paragraph style's English name, which files carry in every language."""
    if style == "Title":
        return "# "
    if style.startswith("Heading ") and style[8:].isdigit():
        return "#" * min(int(style[8:]), 6) + " "
    return "- " if style.startswith("List") else ""


def _row(row: Any) -> str:
    """A table row; a cell that spans several columns counts once."""
    cells: list[str] = []
    last: Any = None
    for cell in row.cells:
        if cell._tc is not last:
            cells.append(" ".join(cell.text.split()))
        last = cell._tc
    return f"| {' | '.join(cells)} |" if any(cells) else ""
