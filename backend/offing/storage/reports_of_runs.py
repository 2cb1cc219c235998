"""Reports of many runs, read with two statements however many they are."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from offing.core.report import Citation, Report
from offing.core.report_record import report_from_parts
from offing.storage.pool import Connection
from offing.storage.reports import citation_from_row

LIST_OWN_VERSIONS = """
    select distinct on (run_id) run_id, version from report
     where run_id = any(%s) and edited_by is null order by run_id, version desc
"""

LIST_REPORTS = """
    select report.run_id, status, stop_reason, body
      from unnest(%(runs)s::uuid[], %(versions)s::integer[]) as wanted(run_id, version)
      join report on report.run_id = wanted.run_id and report.version = wanted.version
"""

LIST_CITATIONS = """
    select citation.run_id, number, text_id, start_char, end_char, quote, source_id, title
      from unnest(%(runs)s::uuid[], %(versions)s::integer[]) as wanted(run_id, version)
      join citation on citation.run_id = wanted.run_id and citation.report_version = wanted.version
     order by citation.run_id, number
"""


async def list_own_reports(connection: Connection, run_ids: Sequence[UUID]) -> dict[UUID, Report]:
    """Return the newest version that each run itself wrote. Runs without a report are left out."""
    rows = await (await connection.execute(LIST_OWN_VERSIONS, (list(run_ids),))).fetchall()
    return await list_reports(connection, dict(rows))


async def list_reports(connection: Connection, versions: Mapping[UUID, int]) -> dict[UUID, Report]:
    """Return a version of the report of each run. Versions that do not exist are left out."""
    if not versions:
        return {}
    values = {"runs": list(versions), "versions": list(versions.values())}
    citations = dict[UUID, list[Citation]]()
    for run, *row in await (await connection.execute(LIST_CITATIONS, values)).fetchall():
        citations.setdefault(run, []).append(citation_from_row(tuple[Any, ...](row)))
    rows = await (await connection.execute(LIST_REPORTS, values)).fetchall()
    return {
        run: report_from_parts(status, reason, body, tuple(citations.get(run, ())))
        for run, status, reason, body in rows
    }
