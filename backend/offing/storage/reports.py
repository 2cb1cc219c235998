"""Reports as rows: the checked structure without its quotes, and each citation in a separate row."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import orjson
from psycopg.rows import class_row
from psycopg.types.json import Jsonb

from offing.core.errors import NotFound
from offing.core.report import Citation, Report
from offing.core.report_record import report_from_parts, report_to_json
from offing.core.run import FencingToken
from offing.core.tool import SourceSpan
from offing.storage.pool import Connection
from offing.storage.report_sources import locate_citations
from offing.storage.steps import FIRST_SEQ

INSERT_REPORT = f"""
    with inserted as (
      insert into report (run_id, version, tenant_id, seq, status, stop_reason, body)
      select %(run)s, coalesce(max(version), 0) + 1, %(tenant)s, {FIRST_SEQ} + %(seq)s, %(status)s,
             %(stop_reason)s, %(body)s
        from report where run_id = %(run)s
      returning version)
    insert into citation (run_id, report_version, number, tenant_id, text_id, source_id, start_char, end_char, quote,
                          title)
    select %(run)s, inserted.version, c.number, %(tenant)s, c.text_id, c.source_id, c.start_char, c.end_char, c.quote,
           c.title
      from inserted, jsonb_to_recordset(%(citations)s) as c(number integer, text_id uuid, source_id uuid,
      start_char integer,
                                                          end_char integer, quote text, title text)
"""
"""The next version with its citations, in one statement, so that it can be sent together with others."""

INSERT_EDIT = """
    with inserted as (
      insert into report (run_id, version, tenant_id, seq, status, stop_reason, body)
      select run_id, coalesce(%(version)s::integer, (select max(version) + 1 from report where run_id = %(run)s)),
             tenant_id, seq, status, stop_reason, %(body)s
        from report where run_id = %(run)s and version = %(base)s
      returning run_id, version, tenant_id)
    insert into citation (run_id, report_version, number, tenant_id, text_id, source_id, start_char, end_char, quote,
                          title)
    select inserted.run_id, inserted.version, c.number, inserted.tenant_id, c.text_id, c.source_id, c.start_char,
           c.end_char, c.quote, c.title
      from inserted, jsonb_to_recordset(%(citations)s) as c(number integer, text_id uuid, source_id uuid,
                                                          start_char integer, end_char integer, quote text, title text)
"""
"""An edited version has the step of the version that it is made of. A version of null is the next one."""

LOCK_REPORTED_RUN = "select from run where id = %s for update"
"""Two versions that are stored at the same time get different numbers."""

FIND_OWN_VERSION = """
    select version from report where run_id = %s and edited_by is null order by version desc limit 1
"""

GET_LATEST_VERSION = """
    select version, edited_by, created_at from report where run_id = %s order by version desc limit 1
"""

LIST_VERSIONS = """
    select version, created_at, body->>'title' as title, body->>'written_by' as written_by, edited_by, edited_in,
           coalesce(body->'edit'->>'note', '') as note, (body->'edit'->>'base_version')::integer as base_version
      from report where run_id = %s and (%s::integer is null or version < %s) order by version desc limit %s
"""

FIND_FOLLOW_UP_VERSION = """
    select run_id, version, (select max(version) from report as newer where newer.run_id = report.run_id)
      from report where edited_in = %s order by version limit 1
"""

LIST_CITATIONS = """
    select number, text_id, start_char, end_char, quote, source_id, title from citation
     where run_id = %s and report_version = %s order by number
"""


async def insert_report(
    connection: Connection, fence: FencingToken, seq: int, report: Report, *, appended: int | None = None
) -> None:
    """Store the next version of a run's report, whose step is `seq`.

    `appended` is the number of steps that the transaction appended last. If it is given, `seq` is the index of the
    step among them, starting with 0.
    """
    values = {
        "run": fence.run_id,
        "tenant": fence.tenant_id,
        "seq": seq,
        "appended": appended,
        "status": report.status,
        "stop_reason": report.stop_reason,
        "body": Jsonb(report_to_json(report), dumps=orjson.dumps),
        "citations": Jsonb(list(map(_citation_to_row, report.citations)), dumps=orjson.dumps),
    }
    await connection.execute(INSERT_REPORT, values)


async def find_latest_report(connection: Connection, run_id: UUID) -> Report | None:
    """Return the newest version of a run's report. `None` means that there is none."""
    return await find_report(connection, run_id)


async def find_own_report(connection: Connection, run_id: UUID) -> Report | None:
    """Return the newest version that the run itself wrote. `None` means that it wrote none.

    Replay and training read it, because what a person edited is not the work of the run.
    """
    row = await (await connection.execute(FIND_OWN_VERSION, (run_id,))).fetchone()
    return None if row is None else await find_report(connection, run_id, row[0])


async def find_report(connection: Connection, run_id: UUID, version: int | None = None) -> Report | None:
    """Return a version of a run's report, by default the newest. `None` means that there is none."""
    row = await (await connection.execute(GET_REPORT_VERSION, {"run": run_id, "version": version})).fetchone()
    if row is None:
        return None
    version, status, reason, body, *_ = row
    citations = await (await connection.execute(LIST_CITATIONS, (run_id, version))).fetchall()
    return report_from_parts(status, reason, body, tuple(map(citation_from_row, citations)))


def _citation_to_row(citation: Citation) -> dict[str, object]:
    return {
        "number": citation.number,
        "text_id": None if citation.span.text_id == ERASED_TEXT_ID else citation.span.text_id,
        "source_id": citation.source_id,
        "start_char": citation.span.start,
        "end_char": citation.span.end,
        "quote": citation.quote,
        "title": citation.title,
    }


def citation_from_row(row: tuple[Any, ...]) -> Citation:
    """Return a citation from number, text, start, end, quote, source and title. An erased text is id 0."""
    number, text_id, start, end, quote, source_id, title = row
    return Citation(number, SourceSpan(text_id or UUID(int=0), start, end), quote, source_id, title)


GET_REPORT_VERSION = """
    select version, status, stop_reason, body, created_at,
           (select max(version) from report where run_id = %(run)s) as latest_version
      from report
     where run_id = %(run)s and (%(version)s::integer is null or version = %(version)s)
     order by version desc limit 1
"""

FIND_REPORT_VERSION = """
    select max(version) from report where run_id = %(run)s and (%(version)s::integer is null or version = %(version)s)
"""

LIST_VERIFIED_CITATIONS = """
    select c.number, c.text_id, c.start_char, c.end_char, c.quote, c.source_id, c.title,
           coalesce(substr(a.body, c.start_char + 1, c.end_char - c.start_char) = c.quote, false) as verified
      from citation c left join extracted_text a on a.id = c.text_id
     where c.run_id = %s and c.report_version = %s order by c.number
"""
"""A quote is verified if it equals the text of its span. A citation of an erased text is never
verified.
"""

ERASED_TEXT_ID = UUID(int=0)
"""Replaces the id of a text that was erased."""


@dataclass(frozen=True, slots=True)
class FollowUpVersion:
    """The version of an earlier report that a follow-up made."""

    run_id: UUID
    """Run of the earlier report."""
    version: int
    latest_version: int
    """The newest version of that report."""


@dataclass(frozen=True, slots=True)
class VerifiedReport:
    """A version of a report, verified now."""

    version: int
    report: Report
    unverified_citations: frozenset[int]
    """Numbers of citations whose quote is no longer in the stored text."""
    erased_citations: frozenset[int]
    """Numbers of citations whose source was erased."""
    created_at: datetime
    latest_version: int
    """The newest version of the report."""
    became: FollowUpVersion | None = None
    """The version of an earlier report that the run made with this one. `None` means none."""


@dataclass(frozen=True, slots=True)
class LatestVersion:
    """Which version of a report is the newest, and who saved it."""

    number: int
    edited_by: str | None
    """Who edited it: a person, or engine and model of a follow-up. `None` means that the run wrote it."""
    created_at: datetime


@dataclass(frozen=True, slots=True)
class ReportVersionRow:
    """A version of a report without its text."""

    version: int
    created_at: datetime
    title: str
    written_by: str
    """Engine and model of the run's writer."""
    edited_by: str | None
    """Who edited it: a person, or engine and model of a follow-up. `None` means that the run wrote it."""
    edited_in: UUID | None
    """Run of the follow-up that made it. `None` means that no follow-up did."""
    note: str
    base_version: int | None
    """Version that was edited or restored. `None` means that the run wrote this one."""


async def get_report_version(connection: Connection, run_id: UUID, version: int | None = None) -> int:
    """Return the number of a version of a run's report, by default the latest. Raises `NotFound` if there is none."""
    row = await (await connection.execute(FIND_REPORT_VERSION, {"run": run_id, "version": version})).fetchone()
    if row is None or row[0] is None:
        raise NotFound("report", f"of run {run_id}" if version is None else f"{version} of run {run_id}")
    return row[0]


async def get_verified_report(connection: Connection, run_id: UUID, version: int | None = None) -> VerifiedReport:
    """Return a version of a run's report.

    If `version` is `None`, return the latest. Raises `NotFound` if there is none.
    """
    row = await (await connection.execute(GET_REPORT_VERSION, {"run": run_id, "version": version})).fetchone()
    if row is None:
        raise NotFound("report", f"of run {run_id}" if version is None else f"{version} of run {run_id}")
    number, status, reason, body, created_at, latest = row
    cited = await (await connection.execute(LIST_VERIFIED_CITATIONS, (run_id, number))).fetchall()
    report = report_from_parts(status, reason, body, tuple(_verified_citation_from_row(c) for c in cited))
    report = await locate_citations(connection, run_id, report, number)
    unverified = frozenset(c[0] for c in cited if not c[7])
    erased = frozenset(c[0] for c in cited if c[1] is None)
    became = await find_follow_up_version(connection, run_id) if report.follow_up else None
    return VerifiedReport(number, report, unverified, erased, created_at, latest, became)


async def find_latest_version(connection: Connection, run_id: UUID) -> LatestVersion | None:
    """Return which version of a run's report is the newest. `None` means that there is none."""
    row = await (await connection.execute(GET_LATEST_VERSION, (run_id,))).fetchone()
    return None if row is None else LatestVersion(*row)


async def find_follow_up_version(connection: Connection, run_id: UUID) -> FollowUpVersion | None:
    """Return the version that the follow-up `run_id` made of an earlier report. `None` means that it made none."""
    row = await (await connection.execute(FIND_FOLLOW_UP_VERSION, (run_id,))).fetchone()
    return None if row is None else FollowUpVersion(*row)


async def lock_reported_run(connection: Connection, run_id: UUID) -> None:
    """Lock a run whose report gets a version. A transaction that also locks a later run locks this one first."""
    await connection.execute(LOCK_REPORTED_RUN, (run_id,))


async def insert_follow_up_version(connection: Connection, run_id: UUID, base_version: int, report: Report) -> None:
    """Store what a follow-up made of version `base_version` of the report of `run_id` as its next version.

    The transaction has locked that run (`lock_reported_run`). If the report was deleted, nothing is stored.
    """
    await insert_edit(connection, run_id, None, base_version, report)


async def insert_edit(
    connection: Connection, run_id: UUID, version: int | None, base_version: int, report: Report
) -> None:
    """Store an edited version; `None` is the next one. The caller has locked the run."""
    values = {
        "run": run_id,
        "version": version,
        "base": base_version,
        "body": Jsonb(report_to_json(report), dumps=orjson.dumps),
        "citations": Jsonb(list(map(_citation_to_row, report.citations)), dumps=orjson.dumps),
    }
    await connection.execute(INSERT_EDIT, values)


async def list_versions(connection: Connection, run_id: UUID, before: int | None, limit: int) -> list[ReportVersionRow]:
    """Return the versions of a run's report, newest first. `before` is a page key; `None` means the newest."""
    async with connection.cursor(row_factory=class_row(ReportVersionRow)) as cursor:
        await cursor.execute(LIST_VERSIONS, (run_id, before, before, limit))
        return await cursor.fetchall()


def _verified_citation_from_row(row: tuple[Any, ...]) -> Citation:
    number, text_id, start, end, quote, source_id, title, _ = row
    return Citation(number, SourceSpan(text_id or ERASED_TEXT_ID, start, end), quote, source_id, title)
