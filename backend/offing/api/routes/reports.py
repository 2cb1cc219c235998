"""Routes for reports, their exports and their ratings."""

from typing import Annotated, Literal
from uuid import UUID

from fastapi import APIRouter, Query, Response

from offing.api import serializers
from offing.api.auth import CurrentCaller
from offing.api.dependencies import Deps
from offing.api.routes.responses import BODY_TOO_LARGE, Responses, describe_problems
from offing.api.schemas import RatingIn, RatingOut, ReportOut
from offing.api.strict_route import StrictRoute
from offing.services import ratings, report_export, reports

router = APIRouter(prefix="/runs/{run_id}", tags=["reports"], route_class=StrictRoute)

REPORT_NOT_FOUND = describe_problems(_404="There is no such run, or it has no report yet.")

REPORT_FILE_RESPONSES: Responses = {
    200: {
        "description": "The report with its evidence as a file.",
        "content": {
            "text/markdown": {"schema": {"type": "string"}},
            "text/html": {"schema": {"type": "string"}},
            "application/json": {"schema": {"type": "object"}},
        },
    }
}


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


@router.get("/export", response_class=Response, responses=REPORT_NOT_FOUND | REPORT_FILE_RESPONSES)
async def export_report(
    caller: CurrentCaller,
    deps: Deps,
    run_id: UUID,
    format: Annotated[Literal["md", "html", "json"], Query()] = "md",
    version: Annotated[int | None, Query(ge=1, le=2**31 - 1)] = None,
) -> Response:
    """Export the report with its evidence as Markdown, HTML or JSON."""
    exported = await report_export.export_report(deps.database, caller.tenant_id, run_id, format, version)
    disposition = f'attachment; filename="{exported.filename}"'
    return Response(exported.body, media_type=exported.media_type, headers={"Content-Disposition": disposition})


@router.get("/ratings", responses=describe_problems(_404="There is no such run."))
async def list_ratings(caller: CurrentCaller, deps: Deps, run_id: UUID) -> list[RatingOut]:
    """List every version of every rating of this run's reports, newest first."""
    return [
        serializers.serialize_rating(r)
        for r in await ratings.list_ratings_of_run(deps.database, caller.tenant_id, run_id)
    ]


@router.post("/ratings", status_code=201, responses=REPORT_NOT_FOUND | BODY_TOO_LARGE)
async def rate_report(caller: CurrentCaller, deps: Deps, run_id: UUID, rating: RatingIn) -> RatingOut:
    """Rate or correct the latest report or one of its sentences. A new rating supersedes your previous one."""
    stored = await ratings.rate_report(
        deps.database,
        caller.tenant_id,
        run_id,
        person=caller.name,
        sentence_id=rating.sentence_id,
        value=rating.value,
        correction=rating.correction,
    )
    return serializers.serialize_rating(stored)
