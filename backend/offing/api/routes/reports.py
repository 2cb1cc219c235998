"""Routes for reports, their exports and their ratings."""

from typing import Annotated
from urllib.parse import quote
from uuid import UUID

from fastapi import APIRouter, Query, Response

from offing.api import serializers
from offing.api.auth import CurrentCaller
from offing.api.dependencies import Deps
from offing.api.routes.responses import BODY_TOO_LARGE, Responses, describe_problems
from offing.api.schemas.reports import ReportOut
from offing.api.schemas.runs import RatingIn, RatingOut
from offing.api.strict_route import StrictRoute
from offing.services import ratings, report_export, reports

router = APIRouter(prefix="/runs/{run_id}", tags=["reports"], route_class=StrictRoute)

REPORT_NOT_FOUND = describe_problems(_404="There is no such run, or it has no report yet.")

BINARY_FORMATS: tuple[report_export.Format, ...] = ("docx", "pdf")


def describe_files(*formats: report_export.Format) -> Responses:
    """Return the description of a response that is a report as a file in one of these formats."""
    content = {report_export.MEDIA_TYPES[form].partition(";")[0]: {"schema": _describe_file(form)} for form in formats}
    return {200: {"description": "The report with its evidence as a file.", "content": content}}


def _describe_file(form: report_export.Format) -> dict[str, str]:
    if form in BINARY_FORMATS:
        return {"type": "string", "format": "binary"}
    return {"type": "object" if form == "json" else "string"}


@router.get("/report", responses=REPORT_NOT_FOUND)
async def get_report(
    caller: CurrentCaller,
    deps: Deps,
    run_id: UUID,
    version: Annotated[int | None, Query(ge=1, le=2**31 - 1, description="Absent: the latest version.")] = None,
) -> ReportOut:
    """Get the report. `verified` is true for each citation whose quote is in the stored text now."""
    return serializers.serialize_report(
        run_id, await reports.get_report(deps.database, caller.tenant_id, run_id, version)
    )


@router.get(
    "/export",
    response_class=Response,
    responses=REPORT_NOT_FOUND | describe_files("md", "html", "json", "bib", "ris", "docx", "pdf"),
)
async def export_report(
    caller: CurrentCaller,
    deps: Deps,
    run_id: UUID,
    format: Annotated[
        report_export.Format,
        Query(description="`md`, `html`, `json`, `docx` or `pdf`: the report. `bib` or `ris`: its cited sources."),
    ] = "md",
    version: Annotated[int | None, Query(ge=1, le=2**31 - 1)] = None,
) -> Response:
    """Export the report with its evidence as a file, or its cited sources for a reference manager."""
    exported = await report_export.export_report(
        deps.database, deps.report_writer, caller.tenant_id, run_id, format, version
    )
    return Response(
        exported.body,
        media_type=exported.media_type,
        headers={"Content-Disposition": describe_attachment(exported)},
    )


def describe_attachment(exported: report_export.ReportFile) -> str:
    """Return the header that names the file, by its title for clients that read names in all scripts."""
    titled = quote(exported.titled_filename, safe="")
    return f"attachment; filename=\"{exported.filename}\"; filename*=UTF-8''{titled}"


@router.get("/ratings", responses=describe_problems(_404="There is no such run."))
async def list_ratings(caller: CurrentCaller, deps: Deps, run_id: UUID) -> list[RatingOut]:
    """List every version of every rating of this run's reports, newest first."""
    return [
        serializers.serialize_rating(r)
        for r in await ratings.list_ratings_of_run(deps.database, caller.tenant_id, run_id)
    ]


@router.post("/ratings", status_code=201, responses=REPORT_NOT_FOUND | BODY_TOO_LARGE)
async def rate_report(caller: CurrentCaller, deps: Deps, run_id: UUID, rating: RatingIn) -> RatingOut:
    """Rate or correct a version of the report or one of its sentences. A new rating supersedes your previous one."""
    stored = await ratings.rate_report(
        deps.database,
        caller.tenant_id,
        run_id,
        person=caller.name,
        sentence_id=rating.sentence_id,
        value=rating.value,
        correction=rating.correction,
        version=rating.version,
    )
    return serializers.serialize_rating(stored)
