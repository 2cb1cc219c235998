"""The part of a report that a reader without an account gets.

It has what the report itself shows: sentences, verdicts, conflicts, quotes, and title, author, date and public address
of each source. It has no id of the database, no name of a local file except as a title, no address of a private
network, and nothing of the reports that it follows.
"""

from dataclasses import replace
from ipaddress import ip_address
from pathlib import PurePosixPath
from uuid import UUID

from offing.core.bibliography import find_web_address
from offing.core.report import Citation, Report, SourceDetails, VersionOrigin
from offing.core.tool import SourceSpan
from offing.core.url import InvalidUrl, parse_url

PRIVATE_PAGE_TITLE = "Page of a private network"
_PRIVATE_SUFFIXES = (
    ".local",
    ".localhost",
    ".internal",
    ".intranet",
    ".lan",
    ".home",
    ".corp",
    ".private",
    ".home.arpa",
)


def build_shared_report(report: Report) -> Report:
    """Return a report as readers of a share link get it. Its ids of sources are numbers of its own."""
    numbers: dict[UUID, UUID] = {}
    for citation in report.citations:
        numbers.setdefault(citation.source_id, UUID(int=len(numbers) + 1))
    citations = tuple(_share_citation(citation, numbers[citation.source_id]) for citation in report.citations)
    return replace(report, citations=citations, follow_up=None, revision=None, edit=_share_origin(report.edit))


def _share_origin(origin: VersionOrigin | None) -> VersionOrigin | None:
    """Return who made a version, without what a follow-up asked, which is a question of the owner."""
    return origin if origin is None or origin.run_id is None else replace(origin, note="")


def _share_citation(citation: Citation, source_id: UUID) -> Citation:
    details = citation.source or SourceDetails()
    return replace(
        citation,
        span=SourceSpan(UUID(int=0), 0, 0),
        source_id=source_id,
        title=_share_title(citation.title, details),
        source=_share_details(details),
    )


def _share_details(details: SourceDetails) -> SourceDetails:
    """Return author and date of a source, and the address of a public web page with the time of its retrieval."""
    address = _find_public_address(details)
    retrieved_at = details.retrieved_at if address else None
    return SourceDetails(address, bool(address), details.author, details.published, retrieved_at)


def _share_title(title: str, details: SourceDetails) -> str:
    """Return a title without folders, or with another text in place of an address of a private network."""
    if title != details.name or _find_public_address(details):
        return title
    return PRIVATE_PAGE_TITLE if details.is_web else PurePosixPath(title).name


def _find_public_address(details: SourceDetails) -> str:
    """Return the address of a web page that anyone may be able to open. Empty means that it has none."""
    parsed = parse_url(find_web_address(details))
    return "" if isinstance(parsed, InvalidUrl) or not _is_public_host(parsed.host) else parsed.url


def _is_public_host(host: str) -> bool:
    try:
        return ip_address(host).is_global
    except ValueError:
        return "." in host and not host.endswith(_PRIVATE_SUFFIXES)
