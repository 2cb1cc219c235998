"""Reports as rows: the checked structure without its quotes, and each citation in a row of its own."""

from typing import Any
from uuid import UUID

import orjson
from psycopg.types.json import Jsonb

from offing.core.report import Citation, Report, ReportStatus, Section, Sentence
from offing.core.run import Fence
from offing.core.tool import Span
from offing.storage.pool import Connection

INSERT = """
    with placed as (
      insert into report (run_id, version, tenant_id, seq, status, reason, body)
      select %(run)s, coalesce(max(version), 0) + 1, %(tenant)s, %(seq)s, %(status)s, %(reason)s, %(body)s
        from report where run_id = %(run)s
      returning version)
    insert into citation (run_id, version, number, tenant_id, artefact_id, source_id, start_at, end_at, quote, title)
    select %(run)s, placed.version, c.number, %(tenant)s, c.artefact, c.source, c.start_at, c.end_at, c.quote, c.title
      from placed, jsonb_to_recordset(%(citations)s) as c(number integer, artefact uuid, source uuid, start_at integer,
                                                          end_at integer, quote text, title text)
"""
"""The next version with its citations, in one statement, so that it can be sent together with others."""

LATEST = "select version, status, reason, body from report where run_id = %s order by version desc limit 1"

CITATIONS = """
    select number, artefact_id, start_at, end_at, quote, source_id, title from citation
     where run_id = %s and version = %s order by number
"""


async def insert(connection: Connection, fence: Fence, seq: int, report: Report) -> None:
    """Store the next version of a run's report beside its step."""
    values = {
        "run": fence.run,
        "tenant": fence.tenant,
        "seq": seq,
        "status": report.status,
        "reason": report.reason,
        "body": Jsonb(body_of(report), dumps=orjson.dumps),
        "citations": Jsonb(list(map(_citation_row, report.citations)), dumps=orjson.dumps),
    }
    await connection.execute(INSERT, values)


async def latest(connection: Connection, run: UUID) -> Report | None:
    """The newest version of a run's report. None: there is none."""
    row = await (await connection.execute(LATEST, (run,))).fetchone()
    if row is None:
        return None
    version, status, reason, body = row
    citations = await (await connection.execute(CITATIONS, (run, version))).fetchall()
    return report_of(status, reason, body, tuple(map(_citation_of, citations)))


def body_of(report: Report) -> dict[str, Any]:
    """What of a report is stored as JSON."""
    return {
        "title": report.title,
        "answer": None if report.answer is None else _sentence(report.answer),
        "sections": [
            {"heading": section.heading, "sentences": [_sentence(s) for s in section.sentences]}
            for section in report.sections
        ],
        "limits": report.limits,
        "written_by": report.written_by,
    }


def report_of(status: str, reason: str, body: dict[str, Any], citations: tuple[Citation, ...]) -> Report:
    """The stored parts as a report."""
    return Report(
        title=body["title"],
        status=ReportStatus(status),
        reason=reason,
        answer=None if body["answer"] is None else _sentence_of(body["answer"]),
        sections=tuple(Section(s["heading"], tuple(map(_sentence_of, s["sentences"]))) for s in body["sections"]),
        citations=citations,
        limits=body["limits"],
        written_by=body["written_by"],
    )


def _sentence(sentence: Sentence) -> dict[str, Any]:
    return {
        "id": sentence.id,
        "text": sentence.text,
        "citations": list(sentence.citations),
        "rejected": list(sentence.rejected),
    }


def _sentence_of(stored: dict[str, Any]) -> Sentence:
    return Sentence(stored["id"], stored["text"], tuple(stored["citations"]), tuple(stored["rejected"]))


def _citation_row(c: Citation) -> dict[str, object]:
    return {
        "number": c.number,
        "artefact": c.span.artefact,
        "source": c.source,
        "start_at": c.span.start,
        "end_at": c.span.end,
        "quote": c.quote,
        "title": c.title,
    }


def _citation_of(row: tuple[Any, ...]) -> Citation:
    number, artefact, start, end, quote, source, title = row
    return Citation(number, Span(artefact or UUID(int=0), start, end), quote, source, title)
