"""Export a report as a self-contained file with its evidence and the known facts of each source."""

from dataclasses import dataclass
from typing import Literal
from uuid import UUID

import orjson

from offing.core.report_formats import render_html, render_markdown, report_to_json
from offing.storage import reports, run_summaries
from offing.storage.pool import Database
from offing.storage.reports import VerifiedReport
from offing.storage.run_summaries import RunSummary

Format = Literal["md", "html", "json"]

MEDIA_TYPES: dict[Format, str] = {
    "md": "text/markdown; charset=utf-8",
    "html": "text/html; charset=utf-8",
    "json": "application/json",
}


@dataclass(frozen=True, slots=True)
class ReportFile:
    """A report file. Its name is made of ids only."""

    filename: str
    media_type: str
    body: bytes


async def export_report(
    database: Database, tenant_id: UUID, run_id: UUID, file_format: Format, version: int | None = None
) -> ReportFile:
    """Return a version of a run's report as a file. If `version` is `None`, it is the latest. Raises NotFound."""
    async with database.transaction(tenant_id) as connection:
        summary = await run_summaries.get_run_summary(connection, run_id)
        read = await reports.get_verified_report(connection, run_id, version)
    return ReportFile(
        f"offing-{run_id}-v{read.version}.{file_format}", MEDIA_TYPES[file_format], _render(summary, read, file_format)
    )


def _render(run_summary: RunSummary, report: VerifiedReport, file_format: Format) -> bytes:
    match file_format:
        case "md":
            return render_markdown(report.report).encode()
        case "html":
            return render_html(report.report).encode()
        case "json":
            return orjson.dumps(_build_document(run_summary, report), option=orjson.OPT_INDENT_2)


def _build_document(run_summary: RunSummary, report: VerifiedReport) -> dict[str, object]:
    """Return the report with what a reader needs to assess it: the question, the author and which quotes are
    verified.
    """
    run = run_summary.run
    return {
        "run": str(run.id),
        "question": run.question,
        "graph": {"name": run.graph, "version": run.graph_version},
        "status": run.status,
        "stop_reason": run.stop_reason,
        "version": report.version,
        "created_at": report.created_at,
        "unverified": sorted(report.unverified_citations),
        "report": report_to_json(report.report),
    }
