"""The sources of a report, each once with a short id, described in words for readers.

Readers see titles, sites, dates and positions. Ids of the database are only in JSON.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

from offing.core.coded_text import CodedText
from offing.core.report import Citation, Report, SourceDetails, TextPosition
from offing.core.report_labels.english import ENGLISH
from offing.core.report_labels.labels import ReportLabels

_NEAR_EDGE = 0.05
"""Fraction of a text at its beginning and at its end that counts as near it."""


@dataclass(frozen=True, slots=True)
class ReportSource:
    """A source that a report cites, with all its citations."""

    id: str
    """S1, S2 and so on, in the order in which the report first cites the sources."""
    source_id: UUID
    title: str
    details: SourceDetails
    citations: tuple[Citation, ...]
    """In the order of their numbers, at least one."""


def list_report_sources(report: Report) -> tuple[ReportSource, ...]:
    """Return the sources of a report in the order in which it first cites them."""
    sources: dict[UUID, ReportSource] = {}
    for citation in report.citations:
        known = sources.get(citation.source_id) or _build_source(f"S{len(sources) + 1}", citation)
        sources[citation.source_id] = replace(known, citations=(*known.citations, citation))
    return tuple(sources.values())


def map_source_labels(report: Report) -> dict[int, str]:
    """Return the short id of the source by the number of the citation."""
    return {citation.number: source.id for source in list_report_sources(report) for citation in source.citations}


def describe_source(source: ReportSource, labels: ReportLabels = ENGLISH) -> str:
    """Describe a source in words besides its title: author, site or file, and dates. Empty means that none is known."""
    details = source.details
    address = details.name if details.name and details.name != source.title else ""
    parts = (
        details.author and labels.by_author.format(author=details.author),
        find_site(details),
        address,
        details.published and labels.dated.format(date=describe_date(details.published, labels)),
        _describe_retrieval(details, labels),
    )
    return " \u00b7 ".join(part for part in parts if part)


def find_site(details: SourceDetails) -> str:
    """Return the host of a web page without `www`. Empty means that the source is no web page."""
    if not details.is_web:
        return ""
    try:
        return (urlsplit(details.name).hostname or "").removeprefix("www.")
    except ValueError:
        return ""


def _describe_retrieval(details: SourceDetails, labels: ReportLabels) -> str:
    """Say when a web page was retrieved or a document was added. Empty means that the time is unknown."""
    if details.retrieved_at is None:
        return ""
    template = labels.retrieved if details.is_web else labels.added
    return template.format(date=describe_date(details.retrieved_at.date().isoformat(), labels))


def describe_position(citation: Citation, labels: ReportLabels = ENGLISH) -> str:
    """Describe in words where in its source a citation is. Empty means that the position is unknown."""
    parts = (labels.positions[part.code].format(**part.parameters) for part in list_position_parts(citation))
    return labels.between_positions.join(parts)


def list_position_parts(citation: Citation) -> tuple[CodedText, ...]:
    """Return the parts of the position of a citation in its source, as codes of `POSITION_TEXTS`.

    Empty means that the position is unknown.
    """
    position = citation.position
    if position is None:
        return ()
    if position.is_erased:
        return (CodedText("erased", {}),)
    parts = (*_list_page(position), *_list_section(position, citation.title), *_list_lines(position))
    return parts or (_estimate_place(position),)


def sources_to_json(report: Report) -> list[dict[str, Any]]:
    """Return the sources of a report as JSON."""
    return [
        {
            "id": source.id,
            "source_id": str(source.source_id),
            "title": source.title,
            "name": source.details.name,
            "site": find_site(source.details),
            "author": source.details.author,
            "published": source.details.published,
            "retrieved_at": source.details.retrieved_at.isoformat() if source.details.retrieved_at else None,
            "citations": [citation.number for citation in source.citations],
        }
        for source in list_report_sources(report)
    ]


def _build_source(id: str, citation: Citation) -> ReportSource:
    return ReportSource(id, citation.source_id, citation.title, citation.source or SourceDetails(), ())


def describe_date(date: str, labels: ReportLabels) -> str:
    """Return a date in ISO form in words. It stays as exact as it is known."""
    year, *rest = date.split("-")
    if not rest:
        return labels.date_of_year.format(year=year)
    month = labels.months[int(rest[0]) - 1]
    if len(rest) == 1:
        return labels.date_of_month.format(month=month, year=year)
    return labels.date.format(day=int(rest[1]), month=month, year=year)


def _list_page(position: TextPosition) -> Iterable[CodedText]:
    return (CodedText("page", {"number": str(position.page)}),) if position.page else ()


def _list_section(position: TextPosition, title: str) -> Iterable[CodedText]:
    """Name the section without the title of the document, which the source already has."""
    heading = "" if position.heading == title else position.heading.removeprefix(f"{title} \u203a ")
    return (CodedText("section", {"heading": heading}),) if heading else ()


def _list_lines(position: TextPosition) -> Iterable[CodedText]:
    first, last = position.first_line, position.last_line
    if not first:
        return ()
    if first == last:
        return (CodedText("line", {"first": str(first)}),)
    return (CodedText("lines", {"first": str(first), "last": str(last)}),)


def _estimate_place(position: TextPosition) -> CodedText:
    if position.fraction <= _NEAR_EDGE:
        return CodedText("near_beginning", {})
    if position.fraction >= 1 - _NEAR_EDGE:
        return CodedText("near_end", {})
    return CodedText("part_of_way", {"percent": str(round(position.fraction * 20) * 5)})
