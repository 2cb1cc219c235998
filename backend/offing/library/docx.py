"""The text of a DOCX document as Markdown: paragraphs, headings, list items and tables."""

import io
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

from offing.library.extraction import DOCX, Extracted, Refused

MOST_ENTRIES = 1_000
MOST_UNPACKED = 200 * 2**20
"""Bytes of all entries together."""
MOST_RATIO = 100
"""Of unpacked to packed, past the first megabyte."""


LONGEST_REPEATED = 200
"""Code points of a cell that spans rows and is written in each of them; a longer text stands in the first only."""

_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"

_SIGNS = {f"{_W}tab": " ", f"{_W}ptab": " ", f"{_W}cr": " ", f"{_W}noBreakHyphen": "-"}
"""What an element of a run stands for, besides text and breaks."""


def read_docx(data: bytes) -> Extracted:
    """Raises `Refused` for a file that is damaged, or that would unpack to far more than it is.

    Blocks are read from the document's elements, each once. Objects of python-docx look a paragraph's style up among
    all styles, compare a run's elements with one another, and list a cell as often as it has columns, of which a file
    may claim any number.
    """
    import docx
    from docx.exceptions import PythonDocxError

    refuse_bomb(data)
    try:
        document: Any = docx.Document(io.BytesIO(data))
    except (KeyError, ValueError, zipfile.BadZipFile, SyntaxError, PythonDocxError):
        raise Refused("The DOCX file is damaged.", "Open it in a word processor and save it again.") from None
    marks = _Marks.of(document)
    blocks = [block for element in document.element.body for block in _blocks(element, marks)]
    named = str(document.core_properties.title or "").strip()
    first = next((b.lstrip("# ") for b in blocks if b.startswith("#")), "")
    return Extracted("\n\n".join(blocks), named or first, DOCX, f"docx/1+python-docx-{version('python-docx')}")


@dataclass(frozen=True, slots=True)
class _Marks:
    """The Markdown sign of each paragraph style, by its id."""

    by_id: Mapping[str, str]
    default: str
    """Of a paragraph that names no style, or none that there is."""

    @classmethod
    def of(cls, document: Any) -> "_Marks":
        from docx.enum.style import WD_STYLE_TYPE

        kind, by_id = WD_STYLE_TYPE.PARAGRAPH, dict[str, str]()
        for style in document.styles:
            if style.type == kind and style.style_id:
                by_id.setdefault(style.style_id, _mark(style.name or ""))
        usual = document.styles.default(kind)
        return cls(by_id, _mark(usual.name or "") if usual is not None else "")

    def sign(self, style_id: str | None) -> str:
        return self.by_id.get(style_id or "", self.default)


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


def _blocks(element: Any, marks: _Marks) -> Iterator[str]:
    if element.tag == f"{_W}tbl":
        yield "\n".join(filter(None, _rows(element)))
    elif element.tag == f"{_W}p" and (text := " ".join("".join(_written(element)).split())):
        yield marks.sign(element.style) + text


def _mark(style: str) -> str:
    """The Markdown sign for a paragraph style's English name, which files carry in every language."""
    if style == "Title":
        return "# "
    if style.startswith("Heading ") and style[8:].isdigit():
        return "#" * min(int(style[8:]), 6) + " "
    return "- " if style.startswith("List") else ""


def _rows(table: Any) -> Iterator[str]:
    """The rows of a table. A cell that spans columns counts once, and one that spans rows in each of them."""
    above: dict[int, str] = {}
    for row in table.iterchildren(f"{_W}tr"):
        here: dict[int, str] = {}
        column, cells = 0, list[str]()
        for cell in row.iterchildren(f"{_W}tc"):
            goes_on = cell.vMerge == "continue"
            text = above.get(column, "") if goes_on else _text(cell)
            cells.append(text)
            here[column] = text if len(text) <= LONGEST_REPEATED else ""
            column += _columns(cell)
        above = here
        yield f"| {' | '.join(cells)} |" if any(cells) else ""


def _text(cell: Any) -> str:
    return " ".join(" ".join("".join(_written(part)) for part in cell.iterchildren(f"{_W}p")).split())


def _written(paragraph: Any) -> Iterator[str]:
    """What stands in the runs of a paragraph and of its links, white space of any kind as a space."""
    for part in paragraph:
        if part.tag == f"{_W}hyperlink":
            for run in part.iterchildren(f"{_W}r"):
                yield from map(_sign, run)
        elif part.tag == f"{_W}r":
            yield from map(_sign, part)


def _sign(element: Any) -> str:
    if element.tag == f"{_W}t":
        return element.text or ""
    if element.tag == f"{_W}br":
        return " " if element.get(f"{_W}type") in (None, "textWrapping") else ""
    return _SIGNS.get(element.tag, "")


def _columns(cell: Any) -> int:
    """How many columns the cell says that it spans."""
    try:
        return max(1, int(cell.grid_span))
    except ValueError:
        return 1
