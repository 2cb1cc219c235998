"""What the library knows about the sources of a report, and where in them its citations are."""

import re
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from psycopg.rows import class_row

from offing.core.report import Citation, Report, SourceDetails, TextPosition
from offing.storage.pool import Connection
from offing.storage.web_pages import WEB_COLLECTION

MAX_HEADING_DISTANCE = 20_000
"""Maximum code points before a citation in which its heading is looked for."""

LOCATE_CITATIONS = """
    select c.number, c.text_id is null as is_erased, coalesce(s.name, '') as name,
           coalesce(s.collection = %(web)s, false) as is_web,
           case when s.text_id = a.id and s.added_at <= r.created_at then s.added_at else a.created_at end
             as retrieved_at,
           coalesce(n.media_type, '') as media_type,
           coalesce(c.start_char::float8 / nullif(a.length_chars, 0), 0) as fraction,
           coalesce(a.author, '') as author, coalesce(a.published, '') as published,
           coalesce((select p.number from unnest(a.page_starts, a.page_numbers) as p(start_char, number)
                      where p.start_char <= c.start_char order by p.start_char desc limit 1), 0) as page,
           coalesce(w.newlines, 0) as newlines, coalesce(p.heading, '') as heading,
           coalesce(right(w.before, least(c.start_char - coalesce(p.start_char, 0), %(distance)s)), '') as before
      from citation c
      join report r on r.tenant_id = c.tenant_id and r.run_id = c.run_id and r.version = c.report_version
      left join extracted_text a on a.tenant_id = c.tenant_id and a.id = c.text_id
      left join snapshot n on n.tenant_id = a.tenant_id and n.sha256 = a.snapshot_sha256
      left join source s on s.tenant_id = c.tenant_id and s.id = c.source_id
      left join lateral (select heading, start_char from passage
                          where text_id = c.text_id and start_char <= c.start_char
                          order by ordinal desc limit 1) p on true
      left join lateral (select b.before, length(b.before) - length(replace(b.before, chr(10), '')) as newlines
                           from (select left(a.body, c.start_char) as before) b) w on true
     where c.run_id = %(run)s
       and c.report_version = coalesce(%(version)s::integer, (select max(version) from report where run_id = %(run)s))
"""

_HEADING = re.compile(r"^#{1,6}[ \t]+(.+?)[ \t]*$", re.MULTILINE)
_FENCED = re.compile(r"^```.*?(?:^```|\Z)", re.MULTILINE | re.DOTALL)
_NO_LINES = frozenset({"text/html", "application/xhtml+xml"})
"""Media types of text whose stored lines are not those that a person sees."""


@dataclass(frozen=True, slots=True)
class _LocatedRow:
    number: int
    is_erased: bool
    name: str
    is_web: bool
    retrieved_at: datetime | None
    media_type: str
    author: str
    published: str
    page: int
    fraction: float
    newlines: int
    """Line ends before the citation."""
    heading: str
    """Headings above the passage. Empty means that there are none or that the text has no passages."""
    before: str
    """Text from the beginning of the passage, or of the text, to the citation."""


async def locate_citations(connection: Connection, run_id: UUID, report: Report, version: int | None = None) -> Report:
    """Return a version of a run's report with the position and the source details of each citation.

    If `version` is `None`, the report is the latest one.
    """
    values = {"run": run_id, "version": version, "web": WEB_COLLECTION, "distance": MAX_HEADING_DISTANCE}
    async with connection.cursor(row_factory=class_row(_LocatedRow)) as cursor:
        await cursor.execute(LOCATE_CITATIONS, values)
        rows = {row.number: row for row in await cursor.fetchall()}
    located = tuple(_add_details(c, rows[c.number]) if c.number in rows else c for c in report.citations)
    return replace(report, citations=located)


def _add_details(citation: Citation, row: _LocatedRow) -> Citation:
    details = SourceDetails(row.name, row.is_web, row.author, row.published, row.retrieved_at)
    return replace(citation, source=details, position=_build_position(citation, row))


def _build_position(citation: Citation, row: _LocatedRow) -> TextPosition:
    if row.is_erased:
        return TextPosition(is_erased=True)
    heading = _find_heading(row.before) or row.heading
    if not row.media_type.startswith("text/") or row.media_type in _NO_LINES:
        return TextPosition(heading, row.page, fraction=row.fraction)
    first = row.newlines + 1
    last = first + citation.quote.rstrip("\n").count("\n")
    return TextPosition(heading, first_line=first, last_line=last, fraction=row.fraction)


def _find_heading(before: str) -> str:
    """Return the last heading of a text in Markdown outside of code. Empty means that there is none."""
    headings = _HEADING.findall(_FENCED.sub("", before))
    return headings[-1].rstrip("#").strip().replace("`", "") if headings else ""
