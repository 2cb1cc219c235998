"""Read PDF documents: join the lines of pages to paragraphs and drop headers and footers."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from importlib.metadata import version

from offing.library.extraction import DocumentRejectedError, ExtractedDocument

MAX_PAGES = 3_000
MAX_TITLE_CHARS = 500
"""Maximum characters of a title in the PDF's metadata. The rest is dropped."""
MAX_HEADER_LINE_CHARS = 120
"""Maximum characters of a line that can be a header or footer."""

IMAGE_NOTE = "[Page {} is an image without text. It was not read.]"
"""Stands for a page that was scanned without text recognition, in a document with other pages that have text."""

_SOFT_HYPHEN = re.compile(r"[\ufffe\x02\u00ad][ \t]*\n?")
_BROKEN_WORD = re.compile(r"(?<=[a-z])-\n(?=[a-z])")
_SECTION = re.compile(
    r"(?:\d{1,2}(?:\.\d{1,2}){0,3}\.?\s+[^\W\d_][^.!?;]{2,70}"
    r"|(?:Abstract|Introduction|Background|Related Work|Methods?|Results|Discussion|Conclusions?|Acknowledge?ments"
    r"|References|Bibliography|Appendix.{0,40}))$"
)
_QUANTITY = re.compile(
    r"\d[\d.,]*\s+(?:seconds?|minutes?|hours?|days?|weeks?|months?|quarters?|years?|percent|points?|pages?|shares?|units?|"
    r"hundred|thousand|million|billion|trillion|dollars?|euros?|people|employees|customers|countries|"
    r"January|February|March|April|May|June|July|August|September|October|November|December)\b",
    re.I,
)
"""Matches a number with its unit, such as `5 Years`, which is a cell or a phrase and not a numbered heading."""
_OWN_LINE = re.compile(r"[\u2022\u25aa\u25e6\u2013*-]\s|\(?\d{1,3}[.)]\s|\[\d{1,3}\]")
_NO_TITLE = re.compile(
    r"untitled|microsoft (?:word|powerpoint)|\.(?:docx?|dvi|tex|indd|qxd|ps|pptx?)\b|^[\W\d_]*$|^\S*\d\S*$", re.I
)
"""Matches a title that names no subject, such as the name of a program, a file or an accession number."""


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
        pages = [_read_page_lines(document, number) for number in range(len(document))]
        blank = [n for n, lines in enumerate(pages) if not any(lines)]
        images = {n for n in blank if len(blank) < len(pages) and _has_image(document, n)}
        named = str(document.get_metadata_value("Title") or "")[:MAX_TITLE_CHARS].strip()  # pyright: ignore
    texts = [join_lines(lines) for lines in remove_headers_and_footers(pages)]
    read = next(filter(None, texts), "")
    if read:
        texts = [IMAGE_NOTE.format(n + 1) if n in images else text for n, text in enumerate(texts)]
    text = "\n\n".join(filter(None, texts))
    extractor = f"pdf/2+pypdfium2-{version('pypdfium2')}"
    return ExtractedDocument(
        text, named if _is_usable_title(named) else _find_first_line(read), "application/pdf", extractor
    )


def _read_page_lines(document: object, number: int) -> list[str]:
    page = document[number]  # pyright: ignore
    try:
        text = str(page.get_textpage().get_text_range())  # pyright: ignore
    finally:
        page.close()  # pyright: ignore
    text = _SOFT_HYPHEN.sub("", text.replace("\r\n", "\n"))
    return [" ".join(line.split()) for line in _BROKEN_WORD.sub("", text).split("\n")]


def _has_image(document: object, number: int) -> bool:
    from pypdfium2.raw import FPDF_PAGEOBJ_IMAGE

    page = document[number]  # pyright: ignore
    try:
        return any(page.get_objects(filter=[FPDF_PAGEOBJ_IMAGE]))  # pyright: ignore
    finally:
        page.close()  # pyright: ignore


def remove_headers_and_footers(pages: Sequence[list[str]]) -> Iterator[list[str]]:
    """Yield the pages without the lines at the top or bottom that most of them share, including page numbers."""
    edges = Counter(key for page in pages for key in {_line_shape(line) for line in _edge_lines(page)})
    common = {key for key, count in edges.items() if count >= 4 and count >= len(pages) / 2}
    for page in pages:
        drop = {line for line in _edge_lines(page) if _line_shape(line) in common or _line_shape(line) == "#"}
        yield [line for line in page if line not in drop]


def _edge_lines(page: Sequence[str]) -> list[str]:
    lines = [line for line in page if line]
    count = 2 if len(lines) > 8 else 1
    return [line for line in lines[:count] + lines[-count:] if len(line) <= MAX_HEADER_LINE_CHARS]


def _line_shape(line: str) -> str:
    return re.sub(r"\d+", "#", line).strip(" -\u2013|")


def join_lines(lines: Sequence[str]) -> str:
    """Join the lines of a page to paragraphs: a line that fills its column continues in the next line."""
    width = max((len(line) for line in lines), default=0)
    blocks: list[list[str]] = []
    goes_on = False
    for line in lines:
        section = bool(_SECTION.match(line)) and not _QUANTITY.match(line)
        if line and goes_on and not section and not _OWN_LINE.match(line):
            blocks[-1].append(line)
        elif line:
            blocks.append([f"## {line}" if section else line])
        goes_on = bool(line) and not section and _fills_column(line, width)
    return "\n\n".join(" ".join(block) for block in blocks)


def _fills_column(line: str, width: int) -> bool:
    """Return whether a paragraph continues after this line."""
    if line[-1] in ".!?:\u2026":
        return len(line) > 0.9 * width
    return len(line) > 0.5 * width


def _is_usable_title(title: str) -> bool:
    return len(title) > 3 and not _NO_TITLE.search(title)


def _find_first_line(text: str) -> str:
    line = text.split("\n", 1)[0].strip("# ")
    return line if 3 < len(line) <= 200 else ""
