"""Reports, their exports, and what people say about them."""

from typing import Annotated, Literal
from uuid import UUID

from fastapi import APIRouter, Query, Response

from offing.api import wire
from offing.api.auth import Known
from offing.api.parts import Held
from offing.api.routes.responses import TOO_LARGE, Responses, problems
from offing.api.routing import StrictRoute
from offing.api.schemas import RatingIn, RatingOut, ReportOut
from offing.services import exports, ratings, views

router = APIRouter(prefix="/runs/{run_id}", tags=["reports"], route_class=StrictRoute)

NO_REPORT = problems(_404="There is no such run, or it has no report yet.")

FILE: Responses = {
    200: {
        "description": "The report with its evidence, as a file.",
        "content": {
            "text/markdown": {"schema": {"type": "string"}},
            "text/html": {"schema": {"type": "string"}},
            "application/json": {"schema": {"type": "object"}},
        },
    }
}


@router.get("/report", responses=NO_REPORT)
async def get_report(
    caller: Known,
    held: Held,
    run_id: UUID,
    version: Annotated[int | None, Query(ge=1, le=2**31 - 1, description="Absent: the latest.")] = None,
) -> ReportOut:
    """The report. `verified` says of each citation whether its quote was found in the stored text just now."""
    return wire.report_out(run_id, await views.report(held.database, caller.tenant, run_id, version))


@router.get("/export", response_class=Response, responses=NO_REPORT | FILE)
async def export_report(
    caller: Known,
    held: Held,
    run_id: UUID,
    format: Annotated[Literal["md", "html", "json"], Query()] = "md",
    version: Annotated[int | None, Query(ge=1, le=2**31 - 1)] = None,
) -> Response:
    """The report with its evidence as Markdown, HTML or JSON."""
    made = await exports.export(held.database, caller.tenant, run_id, format, version)
    disposition = f'attachment; filename="{made.name}"'
    return Response(made.body, media_type=made.media_type, headers={"Content-Disposition": disposition})


@router.get("/ratings", responses=problems(_404="There is no such run."))
async def list_ratings(caller: Known, held: Held, run_id: UUID) -> list[RatingOut]:
    """Every version of every rating of this run's reports, newest first."""
    return [wire.rating_out(r) for r in await ratings.of_run(held.database, caller.tenant, run_id)]


@router.post("/ratings", status_code=201, responses=NO_REPORT | TOO_LARGE)
async def rate_report(caller: Known, held: Held, run_id: UUID, rating: RatingIn) -> RatingOut:
    """Rate or correct the latest report, or one of its sentences. A new opinion supersedes the one before."""
    made = await ratings.rate(
        held.database,
        caller.tenant,
        run_id,
        person=caller.name,
        claim=rating.claim,
        value=rating.value,
        correction=rating.correction,
    )
    return wire.rating_out(made)
