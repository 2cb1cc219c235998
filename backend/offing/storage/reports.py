"""Reports as rows: the checked structure without its quotes, and each citation in a row of its own."""

from typing import Any
from uuid import UUID

import orjson
from psycopg.types.json import Jsonb

from offing.core.report import Citation, Report, ReportStatus, Section, Sentence
from offing.core.run import Fence
from offing.core.tool import Span
from offing.storage.pool import Connection

NEXT_VERSION = "select coalesce(max(version), 0) + 1 from report where run_id = %s"

INSERT = (
    "insert into report (run_id, version, tenant_id, seq, status, reason, body) values (%s, %s, %s, %s, %s, %s, %s)"
)

INSERT_CITATION = """
    insert into citation (run_id, version, number, tenant_id, artefact_id, source_id, start_at, end_at, quote, title)
    values (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s)
"""

LATEST = "select version, status, reason, body from report where run_id = %s order by version desc limit 1"

CITATIONS = """
    select number, artefact_id, start_at, end_at, quote, source_id, title from citation
     where run_id = %s and version = %s order by number
"""


async def insert(connection: Connection, fence: Fence, seq: int, report: Report) -> int:
    """Store a version of a run's report beside its step; its number, from 1."""
    row = await (await connection.execute(NEXT_VERSION, (fence.run,))).fetchone()
    version = row[0] if row else 1
    body = Jsonb(body_of(report), dumps=orjson.dumps)
    values = (fence.run, version, fence.tenant, seq, report.status, report.reason, body)
    await connection.execute(INSERT, values)
    for citation in report.citations:
        await connection.execute(INSERT_CITATION, (fence.run, version, *_citation_row(fence, citation)))
    return version


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


def _citation_row(fence: Fence, c: Citation) -> tuple[object, ...]:
    return (c.number, fence.tenant, c.span.artefact, c.source, c.span.start, c.span.end, c.quote, c.title)


def _citation_of(row: tuple[Any, ...]) -> Citation:
    number, artefact, start, end, quote, source, title = row
    return Citation(number, Span(artefact or UUID(int=0), start, end), quote, source, title)
