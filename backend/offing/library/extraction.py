"""Extract text from the bytes of a file, or reject the file with a reason.

The type is detected by content; the name is used only if the content is ambiguous. The name of the
extractor contains the versions of everything that shapes the text, because spans point into exactly that
text. Parsers of complex formats are imported only when such a file comes, which is in a child process.
"""

import codecs
import re
from dataclasses import dataclass, replace

from offing.library.page_starts import PageStarts, convert_text
from offing.library.passages import FRONT_MATTER, find_first_heading, strip_markup
from offing.library.publication import UNKNOWN_PUBLICATION, Publication
from offing.library.text_publication import read_docinfo, read_front_matter

MAX_FILE_BYTES = 25 * 1024 * 1024
MAX_TEXT_CHARS = 20_000_000
"""Maximum code points of an extracted text."""

MEDIA_TYPES_BY_SUFFIX = {
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
"""Media types by the suffixes that a folder is searched for."""

DOCX_MEDIA_TYPE = MEDIA_TYPES_BY_SUFFIX[".docx"]

_CONTROL_CHARS = re.compile(r"[\x00-\x08\x0b\x0e-\x1f\x7f\ud800-\udfff\ufeff]")
_BINARY_CODES = bytes([*range(9), *range(14, 27), *range(28, 32)])
"""Control characters that texts hardly contain."""
_HTML = re.compile(rb"<(?:!doctype\s+html|html|head|body)\b", re.I)
_XML = re.compile(rb"\s*<\?xml[^>]*>")
_TITLE_FIELD = re.compile(r"^title:[ \t]*[\"']?(.+?)[\"']?[ \t]*$", re.MULTILINE)


class DocumentRejectedError(Exception):
    """`DocumentRejectedError(problem, remedy)`: no text can be extracted from this file."""

    def __init__(self, problem: str, remedy: str) -> None:
        super().__init__(problem, remedy)
        self.problem, self.remedy = problem, remedy

    def __str__(self) -> str:
        return f"{self.problem} {self.remedy}"


@dataclass(frozen=True, slots=True)
class ExtractedDocument:
    """The text of a file. `title` is the document's own title, or empty if it has none."""

    text: str
    title: str
    media_type: str
    extractor: str
    publication: Publication = UNKNOWN_PUBLICATION
    page_starts: PageStarts = ()
    """Empty means that it has no pages."""


def extract_text(data: bytes, name: str) -> ExtractedDocument:
    """Return the text of a file. Raises `DocumentRejectedError` with the reason and the solution."""
    if len(data) > MAX_FILE_BYTES:
        raise DocumentRejectedError(
            f"The file has {len(data) / 2**20:.0f} MB. The maximum is {MAX_FILE_BYTES // 2**20} MB.", "Split it."
        )
    media_type = detect_media_type(data, name)
    extracted = _read_by_type(data, media_type)
    text, page_starts = convert_text(extracted.text, extracted.page_starts, clean_text)
    if len(text) > MAX_TEXT_CHARS:
        raise DocumentRejectedError(
            f"Its text has {len(text):,} characters. The maximum is {MAX_TEXT_CHARS:,}.", "Split it."
        )
    if not re.search(r"\w", text):
        raise DocumentRejectedError(
            *_EMPTY_PROBLEMS.get(media_type, ("The file contains no text.", "Add a file that contains text."))
        )
    title = strip_markup(clean_text(extracted.title))[:300]
    return replace(extracted, text=text, title=title, media_type=media_type, page_starts=page_starts)


_EMPTY_PROBLEMS = {
    "application/pdf": (
        "The PDF has no text layer; its pages are probably scanned images.",
        "Run it through text recognition (OCR) first and add the result.",
    )
}


def detect_media_type(data: bytes, name: str) -> str:
    """Return the media type by content, then by name.

    Raises `DocumentRejectedError` for a type that cannot be read.
    """
    suffix = name[name.rfind(".") :].lower() if "." in name else ""
    by_name = MEDIA_TYPES_BY_SUFFIX.get(suffix)
    if b"%PDF-" in data[:1024]:
        return "application/pdf"
    if data.startswith(b"PK\x03\x04"):
        if b"word/document.xml" in data:
            return DOCX_MEDIA_TYPE
        raise DocumentRejectedError("The file is an archive.", "Unpack it and add the documents.")
    if data.startswith(b"\xd0\xcf\x11\xe0"):
        raise DocumentRejectedError("The file is in the old Office format.", "Save it as DOCX or PDF.")
    if _is_html(data[:8192]):
        return "text/html"
    if is_binary(data):
        raise DocumentRejectedError(
            "The file is not a text, PDF, HTML, Markdown or DOCX document.", "Convert it to one of these."
        )
    return by_name if by_name and by_name.startswith("text/") else "text/plain"


def _is_html(head: bytes) -> bool:
    """Return whether the first tag after a declaration and comments starts an HTML page."""
    declared = _XML.match(head)
    rest = head[declared.end() if declared else 0 :].lstrip()
    while rest.startswith(b"<!--"):
        _, _, rest = rest.partition(b"-->")
        rest = rest.lstrip()
    return _HTML.match(rest) is not None


def is_binary(data: bytes) -> bool:
    """Return whether the bytes are not text in any encoding that can be decoded here."""
    head = data[:8192]
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return False
    controls = len(head) - len(head.translate(None, _BINARY_CODES))
    return controls > max(1, len(head) // 100)


def decode_text(data: bytes) -> tuple[str, str]:
    """Return the text and its encoding: by byte order mark, else UTF-8, else Windows-1252."""
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


def clean_text(text: str) -> str:
    """Return the text as stored: with uniform line ends, without characters that Postgres or JSON cannot store."""
    return _CONTROL_CHARS.sub("", text.replace("\r\n", "\n").replace("\r", "\n").replace("\x0c", "\n"))


def _read_by_type(data: bytes, media_type: str) -> ExtractedDocument:
    match media_type:
        case "application/pdf":
            from offing.library.pdf_reader import read_pdf

            return read_pdf(data)
        case "text/html":
            from offing.library.html_reader import read_html

            return read_html(data)
        case media if media == DOCX_MEDIA_TYPE:
            from offing.library.docx_reader import read_docx

            return read_docx(data)
        case _:
            return _read_text(data, media_type)


def _read_text(data: bytes, media_type: str) -> ExtractedDocument:
    """Return a text file unchanged, so that spans are exact."""
    text, encoding = decode_text(data)
    title, publication = "", UNKNOWN_PUBLICATION
    if media_type in ("text/markdown", "text/x-rst"):
        front = FRONT_MATTER.match(text.replace("\r\n", "\n"))
        named = _TITLE_FIELD.search(front.group(1)) if front else None
        title = named.group(1) if named else find_first_heading(clean_text(text))
        publication = read_front_matter(text) if media_type == "text/markdown" else read_docinfo(text)
    return ExtractedDocument(text, title, media_type, f"text/1+{encoding}", publication)
