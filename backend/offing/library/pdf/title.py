"""Find the title of a PDF: in its metadata, or else in the largest type of its first page."""

import re
from collections.abc import Sequence

from offing.library.pdf.geometry import Element, Line

MAX_TITLE_CHARS = 500
"""Maximum characters of a title in the PDF's metadata. The rest is dropped."""
MAX_TYPE_TITLE_CHARS = 200
MAX_TITLE_LINES = 5
MIN_TITLE_TYPE = 1.12
"""Minimum height of a title's type, relative to most text of the page."""

_NO_TITLE = re.compile(
    r"untitled|microsoft (?:word|powerpoint)|\.(?:docx?|dvi|tex|indd|qxd|ps|pptx?|pdf|xlsx?)\b"
    r"|^[\W\d_]*$|^\S*\d\S*$|^(?:document|print|slide|layout|title)\s*\d*$",
    re.I,
)
"""Matches a title that names no subject, such as the name of a program, a file or an accession number."""
_FORM = re.compile(
    r"united states(?: of america)?$|(?:u\.?s\.? |united states )?securities and exchange commission|"
    r"washington,? d\.?\s?c|form \w+-\w+|table of contents$|contents$|arxiv:|annual report$|.*[\u2610-\u2612]",
    re.I,
)
"""Matches a line in large type that the first pages of many documents share, or that has check boxes."""


def is_usable_title(title: str) -> bool:
    return len(title) > 3 and not _NO_TITLE.search(title)


def is_form_line(line: str) -> bool:
    """Return whether a line names a form that many documents share, or has check boxes."""
    return _FORM.match(line) is not None


def find_type_title(elements: Sequence[Element]) -> str:
    """Return the lines in the largest type of a page. Empty if all text has about the same size."""
    lines = [e for e in elements if isinstance(e, Line) and sum(map(str.isalpha, e.text)) >= 3]
    if not lines:
        return ""
    heights = sorted(line.y1 - line.y0 for line in lines for _ in range(1 + len(line.text) // 20))
    usual = heights[len(heights) // 2]
    large = {
        number: line.y1 - line.y0
        for number, line in enumerate(lines)
        if line.y1 - line.y0 >= MIN_TITLE_TYPE * usual and not is_form_line(line.text)
    }
    if not large:
        return ""
    tallest = max(large.values())
    start = next(number for number, height in large.items() if height >= 0.97 * tallest)
    parts = list[str]()
    for line in lines[start : start + MAX_TITLE_LINES]:
        if not 0.9 * tallest <= line.y1 - line.y0 <= 1.05 * tallest or is_form_line(line.text):
            break
        parts.append(line.text)
    title = " ".join(" ".join(parts).split())
    return title if 3 < len(title) <= MAX_TYPE_TITLE_CHARS else ""
