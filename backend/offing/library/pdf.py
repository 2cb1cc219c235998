"""The text of a PDF: its pages' lines joined to paragraphs again, page furniture left out. Knows nothing of layout."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from importlib.metadata import version

from offing.library.extraction import Extracted, Refused

MOST_PAGES = 3_000
LONGEST_TITLE = 500
"""Characters of the title that a PDF names; the rest is dropped."""
LONGEST_FURNITURE = 120
"""Characters of a line that heads or foots pages."""

_SOFT_HYPHEN = re.compile(r"[\ufffe\x02\u00ad][ \t]*\n?")
_BROKEN_WORD = re.compile(r"(?<=[a-z])-\n(?=[a-z])")
_SECTION = re.compile(
    r"(?:\d{1,2}(?:\.\d{1,2}){0,3}\.?\s+[^\W\d_][^.!?;]{2,70}"
    r"|(?:Abstract|Introduction|Background|Related Work|Methods?|Results|Discussion|Conclusions?|Acknowledge?ments"
    r"|References|Bibliography|Appendix.{0,40}))$"
)
_OWN_LINE = re.compile(r"[\u2022\u25aa\u25e6\u2013*-]\s|\(?\d{1,3}[.)]\s|\[\d{1,3}\]")
_NO_TITLE = re.compile(
    r"untitled|microsoft (?:word|powerpoint)|\.(?:docx?|dvi|tex|indd|qxd|ps|pptx?)\b|^\W*\d*\W*$", re.I
)


def read_pdf(data: bytes) -> Extracted:
    """Raises `Refused` for a file that is encrypted, damaged or far too long."""
    import pypdfium2

    try:
        document = pypdfium2.PdfDocument(data)
    except pypdfium2.PdfiumError as error:
        if "password" in str(error).lower():
            raise Refused("The PDF is protected by a password.", "Save it without one.") from None
        raise Refused("The PDF is damaged.", "Save or download it again.") from None
    with document:
        if len(document) > MOST_PAGES:
            raise Refused(f"The PDF has {len(document):,} pages; {MOST_PAGES:,} is the most.", "Split it.")
        pages = [_page(document, number) for number in range(len(document))]
        named = str(document.get_metadata_value("Title") or "")[:LONGEST_TITLE].strip()  # pyright: ignore
    text = "\n\n".join(filter(None, (joined(lines) for lines in without_furniture(pages))))
    extractor = f"pdf/1+pypdfium2-{version('pypdfium2')}"
    return Extracted(text, named if _is_title(named) else _first_line(text), "application/pdf", extractor)


def _page(document: object, number: int) -> list[str]:
    page = document[number]  # pyright: ignore
    try:
        text = str(page.get_textpage().get_text_range())  # pyright: ignore
    finally:
        page.close()  # pyright: ignore
    text = _SOFT_HYPHEN.sub("", text.replace("\r\n", "\n"))
    return [" ".join(line.split()) for line in _BROKEN_WORD.sub("", text).split("\n")]


def without_furniture(pages: Sequence[list[str]]) -> Iterator[list[str]]:
    """The pages without the lines that head or foot most of them, page numbers included."""
    edges = Counter(key for page in pages for key in {_shape(line) for line in _edges(page)})
    common = {key for key, count in edges.items() if count >= 4 and count >= len(pages) / 2}
    for page in pages:
        drop = {line for line in _edges(page) if _shape(line) in common or _shape(line) == "#"}
        yield [line for line in page if line not in drop]


def _edges(page: Sequence[str]) -> list[str]:
    lines = [line for line in page if line]
    count = 2 if len(lines) > 8 else 1
    return [line for line in lines[:count] + lines[-count:] if len(line) <= LONGEST_FURNITURE]


def _shape(line: str) -> str:
    return re.sub(r"\d+", "#", line).strip(" -\u2013|")


def joined(lines: Sequence[str]) -> str:
    """A page's lines as paragraphs: a line that fills its column goes on in the next one."""
    width = max((len(line) for line in lines), default=0)
    blocks: list[list[str]] = []
    goes_on = False
    for line in lines:
        section = bool(_SECTION.match(line))
        if line and goes_on and not section and not _OWN_LINE.match(line):
            blocks[-1].append(line)
        elif line:
            blocks.append([f"## {line}" if section else line])
        goes_on = bool(line) and not section and _fills(line, width)
    return "\n\n".join(" ".join(block) for block in blocks)


def _fills(line: str, width: int) -> bool:
    """Whether a paragraph goes on after this line."""
    if line[-1] in ".!?:\u2026":
        return len(line) > 0.9 * width
    return len(line) > 0.5 * width


def _is_title(named: str) -> bool:
    return len(named) > 3 and not _NO_TITLE.search(named)


def _first_line(text: str) -> str:
    line = text.split("\n", 1)[0].strip("# ")
    return line if 3 < len(line) <= 200 else ""
