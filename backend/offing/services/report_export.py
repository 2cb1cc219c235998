"""Export a report as a self-contained file with its evidence and the known facts of each source."""

import asyncio
from dataclasses import dataclass
from typing import Literal
from uuid import UUID

import orjson

from offing.core.bibliography_formats import render_bibtex, render_ris
from offing.core.file_names import make_file_stem
from offing.core.report_document import build_report_document
from offing.core.report_formats import render_html, render_markdown, report_to_json
from offing.core.report_image import MAX_IMAGE_BYTES, NO_IMAGES, ImageSelection, ReportImage
from offing.core.report_language import find_report_language
from offing.report_files.writers import ReportFileWriter
from offing.services.run_files import IMAGE_MEDIA_TYPES
from offing.storage import reports, run_files, run_summaries
from offing.storage.pool import Connection, Database
from offing.storage.reports import VerifiedReport
from offing.storage.run_summaries import RunSummary

Format = Literal["md", "html", "json", "docx", "pdf", "bib", "ris"]

MEDIA_TYPES: dict[Format, str] = {
    "md": "text/markdown; charset=utf-8",
    "html": "text/html; charset=utf-8",
    "json": "application/json",
    "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "pdf": "application/pdf",
    "bib": "application/x-bibtex; charset=utf-8",
    "ris": "application/x-research-info-systems; charset=utf-8",
}


@dataclass(frozen=True, slots=True)
class ReportFile:
    """A report as a file."""

    filename: str
    """Name made of ids only."""
    titled_filename: str
    """Name made of the title, for people. It may have any letters."""
    media_type: str
    body: bytes


async def export_report(
    database: Database,
    writer: ReportFileWriter,
    tenant_id: UUID,
    run_id: UUID,
    file_format: Format,
    version: int | None = None,
) -> ReportFile:
    """Return a version of a run's report as a file. If `version` is `None`, it is the latest.

    Raises NotFound, and for DOCX and PDF the errors of `ReportFileWriter.write`. Nothing is rendered on the event loop.
    """
    async with database.transaction(tenant_id) as connection:
        summary = await run_summaries.get_run_summary(connection, run_id)
        read = await reports.get_verified_report(connection, run_id, version)
        has_images = file_format in ("html", "docx", "pdf")
        images = await _read_images(connection, tenant_id, run_id) if has_images else NO_IMAGES
    name = f"offing-{run_id}-v{read.version}"
    if file_format == "json":
        body = await asyncio.to_thread(orjson.dumps, _build_document(summary, read), option=orjson.OPT_INDENT_2)
        return _name_file(read, file_format, name, body)
    style = summary.run.report_style
    return await render_report_file(writer, read, file_format, style.language if style else None, name, images)


async def render_report_file(
    writer: ReportFileWriter,
    read: VerifiedReport,
    file_format: Literal["md", "html", "docx", "pdf", "bib", "ris"],
    language: str | None,
    name: str,
    images: ImageSelection = NO_IMAGES,
) -> ReportFile:
    """Return a report as a file with this name. If `language` is `None`, it is guessed.

    Raises for DOCX and PDF the errors of `ReportFileWriter.write`. Nothing is rendered on the event loop.
    """
    if file_format in ("docx", "pdf"):
        document = await asyncio.to_thread(build_report_document, read.report, read.created_at, language, images)
        body = await writer.write(document, file_format)
    else:
        body = await asyncio.to_thread(_render, read, images, file_format, find_report_language(read.report, language))
    return _name_file(read, file_format, name, body)


def _name_file(read: VerifiedReport, file_format: Format, name: str, body: bytes) -> ReportFile:
    titled = make_file_stem(read.report.title, name)
    return ReportFile(f"{name}.{file_format}", f"{titled}.{file_format}", MEDIA_TYPES[file_format], body)


async def _read_images(connection: Connection, tenant_id: UUID, run_id: UUID) -> ImageSelection:
    """Return the latest image of each name that the code of the run has written, within the limits of a file."""
    files = await run_files.list_files_of_run(connection, tenant_id, run_id)
    latest = {file.name: file for file in files if file.media_type in IMAGE_MEDIA_TYPES}
    selection = NO_IMAGES
    for file in latest.values():
        is_shown = file.media_type == "image/png" and file.size_bytes <= MAX_IMAGE_BYTES
        read = await run_files.find_file_by_hash(connection, tenant_id, run_id, file.sha256) if is_shown else None
        selection = selection.adding(ReportImage(file.name, read.body if read else b""))
    return selection


def _render(
    read: VerifiedReport, images: ImageSelection, file_format: Literal["md", "html", "bib", "ris"], language: str
) -> bytes:
    match file_format:
        case "md":
            return render_markdown(read.report, language=language).encode()
        case "html":
            return render_html(read.report, images, language=language).encode()
        case "bib":
            return render_bibtex(read.report).encode()
        case "ris":
            return render_ris(read.report).encode()


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
