"""The cited sources of a report as entries of a bibliography.

Every word of an entry may come from a document or a web page. An entry holds one line of text per field, without
control characters, and an address only if it is one of the web.
"""

import hashlib
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import PurePosixPath

from offing.core.report import Report, SourceDetails
from offing.core.report_sources import ReportSource, find_site, list_report_sources
from offing.core.report_texts import join_lines
from offing.core.url import InvalidUrl, parse_url

KEY_WORD_CHARS = 24
"""Maximum characters of the readable part of a key."""
KEY_DIGEST_CHARS = 12
"""Hexadecimal digits of the part of a key that tells sources with the same site or file name apart."""

_DATE = re.compile(r"(\d{4})(?:-(0[1-9]|1[0-2])(?:-(0[1-9]|[12]\d|3[01]))?)?")
_AUTHOR_SEPARATOR = re.compile(r"\s*;\s*")


@dataclass(frozen=True, slots=True)
class BibliographyEntry:
    """A cited source. Empty text means unknown."""

    key: str
    """ASCII letters, digits and hyphens. It depends only on the source, so it is the same in every report."""
    label: str
    """Short id of the source in the report, such as S1."""
    citations: tuple[int, ...]
    """Numbers of the citations of the source in the report."""
    title: str
    authors: tuple[str, ...]
    """As the source names them. `Lee, Ann` is a person with a family name; other forms are not divided."""
    site: str
    """Host of a web page without `www`."""
    url: str
    """Address of a web page, percent-encoded."""
    file: str
    """Path or file name of a document, or an address that no program could follow."""
    published: str
    """Date as YYYY, YYYY-MM or YYYY-MM-DD."""
    published_text: str
    """Date in the words of the source if it has another form."""
    retrieved: date | None
    """When a web page was retrieved, or a document was added to the library."""


def list_bibliography(report: Report) -> tuple[BibliographyEntry, ...]:
    """Return an entry for each source that a sentence of the report cites, in the order of the report."""
    cited = {citation.number for citation in report.cited()}
    return tuple(_list_entries(report, cited))


def _list_entries(report: Report, cited: set[int]) -> Iterator[BibliographyEntry]:
    for source in list_report_sources(report):
        numbers = tuple(citation.number for citation in source.citations if citation.number in cited)
        if numbers:
            yield _build_entry(source, numbers)


def _build_entry(source: ReportSource, numbers: tuple[int, ...]) -> BibliographyEntry:
    details = source.details
    published, url = join_lines(details.published), find_web_address(details)
    is_date = _DATE.fullmatch(published) is not None
    return BibliographyEntry(
        key=_make_key(source),
        label=source.id,
        citations=numbers,
        title=join_lines(source.title) or join_lines(details.name) or source.id,
        authors=tuple(filter(None, _AUTHOR_SEPARATOR.split(join_lines(details.author)))),
        site=join_lines(find_site(details)),
        url=url,
        file="" if url else join_lines(details.name),
        published=published if is_date else "",
        published_text="" if is_date else published,
        retrieved=details.retrieved_at.date() if details.retrieved_at else None,
    )


def find_web_address(details: SourceDetails) -> str:
    """Return the percent-encoded address of a web page. Empty means that it has none with HTTP or HTTPS."""
    parsed = parse_url(details.name) if details.is_web else InvalidUrl("")
    return "" if isinstance(parsed, InvalidUrl) else parsed.url


def _make_key(source: ReportSource) -> str:
    details = source.details
    word = _slug(find_site(details) or PurePosixPath(details.name).stem) or "source"
    digest = hashlib.sha256(source.source_id.bytes).hexdigest()[:KEY_DIGEST_CHARS]
    return f"{word}-{digest}"


def _slug(text: str) -> str:
    """Return the ASCII letters and digits of a text in lower case, with hyphens for everything between them."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:KEY_WORD_CHARS].strip("-")
