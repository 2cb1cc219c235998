"""From a file's bytes to its text. The only home of what file types are read, and of why a file is refused.

A type is told by content; the name only settles what content leaves open. The extractor's name carries the versions of
everything that shapes the text, since spans point into exactly that text. Pure; the parsers for formats that can hurt
are imported only when such a file comes, which is in a child process.
"""

import codecs
import re
from dataclasses import dataclass

from offing.library.passages import FRONT_MATTER, first_heading, plain

MOST_BYTES = 25 * 1024 * 1024
MOST_TEXT = 20_000_000
"""Code points of an extracted text."""

SUFFIXES = {
    ".pdf": "application/pdf",
    ".html": "text/html",
    ".htm": "text/html",
    ".xhtml": "text/html",
    ".md": "text/markdown",
    ".markdown": "text/markdown",
    ".mdx": "text/markdown",
    ".txt": "text/plain",
    ".text": "text/plain",
    ".rst": "text/x-rst",
    ".docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
}
"""Names that a folder is searched for."""

DOCX = SUFFIXES[".docx"]

_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0e-\x1f\x7f\ud800-\udfff\ufeff]")
_HTML = re.compile(rb"<(?:!doctype\s+html|html|head|body)\b", re.I)
_XML = re.compile(rb"\s*<\?xml[^>]*>")
_FIELD = re.compile(r"^title:[ \t]*[\"']?(.+?)[\"']?[ \t]*$", re.MULTILINE)


class Refused(Exception):
    """`Refused(problem, remedy)`: no text can be had from this file."""

    def __init__(self, problem: str, remedy: str) -> None:
        super().__init__(problem, remedy)
        self.problem, self.remedy = problem, remedy

    def __str__(self) -> str:
        return f"{self.problem} {self.remedy}"


@dataclass(frozen=True, slots=True)
class Extracted:
    """A file's text. `title` is what the document calls itself; empty: it does not."""

    text: str
    title: str
    media_type: str
    extractor: str


def extract(data: bytes, name: str) -> Extracted:
    """The text of a file. Raises `Refused` with the reason and what to do."""
    if len(data) > MOST_BYTES:
        raise Refused(f"The file has {len(data) / 2**20:.0f} MB; {MOST_BYTES // 2**20} MB is the most.", "Split it.")
    media_type = media_type_of(data, name)
    found = _read(data, media_type)
    text = clean(found.text)
    if len(text) > MOST_TEXT:
        raise Refused(f"Its text has {len(text):,} characters; {MOST_TEXT:,} is the most.", "Split it.")
    if not re.search(r"\w", text):
        raise Refused(*_EMPTY.get(media_type, ("The file holds no text.", "Add a file that does.")))
    return Extracted(text, plain(clean(found.title))[:300], media_type, found.extractor)


_EMPTY = {
    "application/pdf": (
        "The PDF has no text layer; its pages are probably scanned images.",
        "Run it through text recognition (OCR) first and add the result.",
    )
}


def media_type_of(data: bytes, name: str) -> str:
    """The type by content, then by name. Raises `Refused` where it is none that can be read."""
    suffix = name[name.rfind(".") :].lower() if "." in name else ""
    by_name = SUFFIXES.get(suffix)
    if b"%PDF-" in data[:1024]:
        return "application/pdf"
    if data.startswith(b"PK\x03\x04"):
        if b"word/document.xml" in data:
            return DOCX
        raise Refused("The file is an archive.", "Unpack it and add the documents in it.")
    if data.startswith(b"\xd0\xcf\x11\xe0"):
        raise Refused("The file is in the old Office format.", "Save it as DOCX or PDF.")
    if _is_html(data[:8192]):
        return "text/html"
    if is_binary(data):
        raise Refused("The file is not a text, PDF, HTML, Markdown or DOCX document.", "Convert it to one of these.")
    return by_name if by_name and by_name.startswith("text/") else "text/plain"


def _is_html(head: bytes) -> bool:
    """Whether the first tag behind a declaration and comments is one that begins a page."""
    declared = _XML.match(head)
    rest = head[declared.end() if declared else 0 :].lstrip()
    while rest.startswith(b"<!--"):
        _, _, rest = rest.partition(b"-->")
        rest = rest.lstrip()
    return _HTML.match(rest) is not None


def is_binary(data: bytes) -> bool:
    """Whether the bytes are no text in any encoding that we decode."""
    head = data[:8192]
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return False
    controls = sum(head.count(bytes([c])) for c in (*range(9), *range(14, 27), *range(28, 32)))
    return controls > max(1, len(head) // 100)


def decode(data: bytes) -> tuple[str, str]:
    """The text and the encoding it was in: by its mark, else UTF-8, else Windows Latin."""
    for mark, encoding in (
        (codecs.BOM_UTF8, "utf-8"),
        (codecs.BOM_UTF16_LE, "utf-16-le"),
        (codecs.BOM_UTF16_BE, "utf-16-be"),
    ):
        if data.startswith(mark):
            return data[len(mark) :].decode(encoding, "replace"), encoding
    try:
        return data.decode("utf-8"), "utf-8"
    except UnicodeDecodeError:
        return data.decode("cp1252", "replace"), "cp1252"


def clean(text: str) -> str:
    """The text as it is stored: one kind of line end, and nothing that Postgres or JSON cannot carry."""
    return _CONTROLS.sub("", text.replace("\r\n", "\n").replace("\r", "\n").replace("\x0c", "\n"))


def _read(data: bytes, media_type: str) -> Extracted:
    match media_type:
        case "application/pdf":
            from offing.library.pdf import read_pdf

            return read_pdf(data)
        case "text/html":
            from offing.library.html import read_html

            return read_html(data)
        case media if media == DOCX:
            from offing.library.docx import read_docx

            return read_docx(data)
        case _:
            return _read_text(data, media_type)


def _read_text(data: bytes, media_type: str) -> Extracted:
    """Text as written, so that spans are exact."""
    text, encoding = decode(data)
    title = ""
    if media_type in ("text/markdown", "text/x-rst"):
        front = FRONT_MATTER.match(text.replace("\r\n", "\n"))
        named = _FIELD.search(front.group(1)) if front else None
        title = named.group(1) if named else first_heading(clean(text))
    return Extracted(text, title, media_type, f"text/1+{encoding}")
