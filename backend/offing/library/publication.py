"""Who wrote a document and when, from what the document states about itself.

The statements are untrusted. Names and dates are bounded and contain no control characters, a date has one form, and
a statement that names no author or no date is dropped.
"""

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from itertools import islice

from offing.core.written_dates import WrittenDate, read_dates

MAX_AUTHOR_CHARS = 200
"""Maximum code points of the authors of a document. Authors beyond it are replaced by `et al.`."""
MAX_AUTHORS = 50
"""Maximum number of stated authors that are read."""
MAX_STATEMENT_CHARS = 2_000
"""Maximum code points of a statement that are read."""
MAX_DATE_CHARS = 80
"""Maximum code points of a date that are read."""
MIN_YEAR = 1_400

_TAG = re.compile(r"<[^<>]{0,200}>")
_BY = re.compile(r"\Aby:?\s+", re.IGNORECASE)
_ADDRESS = re.compile(r"://|\bwww\.|\S@\S|\\")
_PLACEHOLDER = re.compile(r"[{}$%=\[\]<>]")
_LOGIN = re.compile(r"[a-z\d._-]+")
"""Matches a name of an account instead of a person: one word of ASCII characters without a capital letter."""
_NOBODY = frozenset(
    (
        *("admin", "administrator", "anonymous", "author", "authors", "default", "editor", "guest", "home", "hp", "me"),
        *("n/a", "na", "no author", "nobody", "none", "not available", "null", "owner", "pc", "redaktion", "root"),
        *("site admin", "staff", "test", "undefined", "un-named", "unknown", "unknown author", "user", "webmaster"),
        *("windows user", "wordpress", "your name"),
    )
)
_PROGRAM = re.compile(
    r"\b(?:microsoft|adobe|acrobat|indesign|libreoffice|openoffice|wkhtmltopdf|quartz|ghostscript|pdfcreator|pdftex"
    r"|latex|tex live|python-docx|apache (?:poi|fop)|google docs|aspose|itext|skia/pdf|chromium|mozilla"
    r"|edgar online|workiva)\b",
    re.IGNORECASE,
)
"""Matches the name of a program that writes itself where an author belongs."""
_ISO_DATE = re.compile(r"(\d{4})(?:([-/.])(\d{1,2})(?:\2(\d{1,2}))?)?(?![-/.\d])")
_DIGITS_DATE = re.compile(r"(\d{4})(\d{2})(\d{2})(?!\d)")
_DEFAULT_DATES = frozenset((date(1601, 1, 1), date(1899, 12, 30), date(1900, 1, 1), date(1970, 1, 1), date(1980, 1, 1)))
"""Dates that programs write where they know none."""


@dataclass(frozen=True, slots=True)
class Publication:
    """Who wrote a document and when."""

    author: str = ""
    """Names of the authors. Empty means that the document names none."""
    published: str = ""
    """Date of the document as YYYY, YYYY-MM or YYYY-MM-DD. Empty means that the document states none."""


UNKNOWN_PUBLICATION = Publication()


def build_publication(authors: Iterable[str], dates: Iterable[str]) -> Publication:
    """Return a publication from stated authors and dates. The first date that can be read counts."""
    published = (normalize_published(text) for text in dates)
    return Publication(join_authors(authors), next(filter(None, published), ""))


def join_authors(statements: Iterable[str]) -> str:
    """Return the names of authors in one line. Empty if no statement names an author.

    A statement is a name, or several names with semicolons between them.
    """
    stated = (name for statement in statements for name in statement[:MAX_STATEMENT_CHARS].split(";"))
    cleaned = (clean_author(name) for name in islice(stated, MAX_AUTHORS))
    names = list(dict.fromkeys(name for name in cleaned if name))
    separator = "; " if any("," in name for name in names) else ", "
    return _shorten_names(separator.join(names))


def clean_author(statement: str) -> str:
    """Return a stated name as one line. Empty if it names a program, an account, an address or nobody."""
    bare = _BY.sub("", _clean_line(_TAG.sub("", statement)).strip(" ,;:-"))
    if not any(map(str.isalpha, bare)) or bare.casefold() in _NOBODY:
        return ""
    if _ADDRESS.search(bare) or _PLACEHOLDER.search(bare) or _LOGIN.fullmatch(bare) or _PROGRAM.search(bare):
        return ""
    return bare


def normalize_published(statement: str) -> str:
    """Return a stated date as YYYY, YYYY-MM or YYYY-MM-DD. Empty if it is no date or cannot be one of a publication.

    A date whose day and month cannot be told apart, such as 03/04/2024, becomes its year.
    """
    text = _clean_line(statement[:MAX_DATE_CHARS])
    if (match := _DIGITS_DATE.match(text)) is not None:
        return _render_date(*map(int, match.groups()))
    if (match := _ISO_DATE.match(text)) is not None:
        year, _, month, day = match.groups()
        return _render_date(int(year), int(month or 0), int(day or 0))
    return _join_readings([reading for reading in read_dates(text) if reading.year])


def _join_readings(readings: list[WrittenDate]) -> str:
    """Return the part of a date that all its readings share. Empty if they share no year."""
    years, months, days = ({getattr(one, part) for one in readings} for part in ("year", "month", "day"))
    if len(years) != 1:
        return ""
    month = months.pop() if len(months) == 1 else 0
    return _render_date(years.pop(), month, (days.pop() or 0) if month and len(days) == 1 else 0)


def _render_date(year: int, month: int = 0, day: int = 0) -> str:
    """Return a date in ISO form, where 0 stands for an unknown month or day. Empty if there is no such date."""
    try:
        exact = date(year, month or 1, day or 1)
    except ValueError:
        return ""
    if not MIN_YEAR <= year <= datetime.now(UTC).year + 1 or (month and day and exact in _DEFAULT_DATES):
        return ""
    return exact.isoformat()[: 10 if month and day else 7 if month else 4]


def _clean_line(text: str) -> str:
    """Return a text as one line without control, formatting and unassigned characters."""
    spaced = " ".join(unicodedata.normalize("NFC", text[:MAX_STATEMENT_CHARS]).split())
    return "".join(filter(str.isprintable, spaced))


def _shorten_names(names: str) -> str:
    """Return as many whole names as `MAX_AUTHOR_CHARS` permits. Empty if there is no border between names."""
    if len(names) <= MAX_AUTHOR_CHARS:
        return names
    mark = " et al."
    head = names[: MAX_AUTHOR_CHARS - len(mark) + 1]
    end = max(head.rfind(border) for border in ("; ", ", ", " and ", " & "))
    return head[:end].rstrip(" ,;") + mark if end > 0 else ""
