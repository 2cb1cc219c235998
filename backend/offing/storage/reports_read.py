"""Versions of reports as readers see them: each citation checked again against the text as it is stored now."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from offing.core.errors import NotFound
from offing.core.report import Citation, Report
from offing.core.tool import Span
from offing.storage.pool import Connection
from offing.storage.reports import report_of

VERSION = """
    select version, status, reason, body, created_at from report
     where run_id = %(run)s and (%(version)s::integer is null or version = %(version)s)
     order by version desc limit 1
"""

CITATIONS = """
    select c.number, c.artefact_id, c.start_at, c.end_at, c.quote, c.source_id, c.title,
           coalesce(substr(a.body, c.start_at + 1, c.end_at - c.start_at) = c.quote, false) as verified
      from citation c left join artefact a on a.id = c.artefact_id
     where c.run_id = %s and c.version = %s order by c.number
"""
"""A quote counts as verified when it is what its span holds. An erased text verifies nothing."""

ERASED = UUID(int=0)
"""Stands for the text of a source that was erased."""


@dataclass(frozen=True, slots=True)
class ReadReport:
    """A version of a report, as of now."""

    version: int
    report: Report
    unverified: frozenset[int]
    """Numbers of citations whose quote is not found any more."""
    erased: frozenset[int]
    """Numbers of citations whose source was erased."""
    created_at: datetime


async def read(connection: Connection, run: UUID, version: int | None = None) -> ReadReport:
    """A version of a run's report; None: the latest. Raises NotFound."""
    row = await (await connection.execute(VERSION, {"run": run, "version": version})).fetchone()
    if row is None:
        raise NotFound("report", f"of run {run}" if version is None else f"{version} of run {run}")
    number, status, reason, body, created_at = row
    cited = await (await connection.execute(CITATIONS, (run, number))).fetchall()
    report = report_of(status, reason, body, tuple(_citation(c) for c in cited))
    unverified = frozenset(c[0] for c in cited if not c[7])
    return ReadReport(number, report, unverified, frozenset(c[0] for c in cited if c[1] is None), created_at)


def _citation(row: tuple[Any, ...]) -> Citation:
    number, artefact, start, end, quote, source, title, _ = row
    return Citation(number, Span(artefact or ERASED, start, end), quote, source, title)
