"""Routes for share links, and for readers of a shared report, who need no account."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Path, Query, Request, Response

from offing.api.auth import CurrentCaller
from offing.api.dependencies import Deps
from offing.api.problems import ProblemError
from offing.api.routes.reports import REPORT_NOT_FOUND, describe_attachment, describe_files
from offing.api.routes.responses import BODY_TOO_LARGE, RUN_NOT_FOUND, describe_problems
from offing.api.schemas.shares import (
    CreatedShareOut,
    SharedReportOut,
    ShareIn,
    SharePage,
    build_share_request,
    serialize_created_share,
    serialize_share,
    serialize_shared_report,
)
from offing.api.strict_route import StrictRoute
from offing.core.errors import NotFound
from offing.services import report_shares, reports

router = APIRouter(tags=["share links"], route_class=StrictRoute)

Token = Annotated[str, Path(description="The token of a share link.")]
Cursor = Annotated[str | None, Query(max_length=200, description="`next` of the previous page.")]
Limit = Annotated[int, Query(ge=1, le=200)]

FILE_COST = 10
"""What a file counts for in the limits of readers, because it takes about as much work as 10 pages."""


shared_router = APIRouter(prefix="/shared", tags=["share links"])
"""Open to all: anyone who has the token of a link may read its report."""

NOT_SHARED = describe_problems(
    _404="The link is unknown, has expired or was revoked.", _429="Too many requests. Try again after `Retry-After`."
)


@router.post(
    "/runs/{run_id}/shares",
    status_code=201,
    responses=REPORT_NOT_FOUND | BODY_TOO_LARGE | describe_problems(_409="The run has too many links."),
)
async def create_share(caller: CurrentCaller, deps: Deps, run_id: UUID, body: ShareIn) -> CreatedShareOut:
    """Create a link under which a version of the report can be read without an account. Its token is shown once."""
    created = await report_shares.create_share(deps.database, caller.tenant_id, build_share_request(run_id, body))
    return serialize_created_share(created)


@router.get("/runs/{run_id}/shares", responses=RUN_NOT_FOUND)
async def list_shares_of_run(
    caller: CurrentCaller, deps: Deps, run_id: UUID, cursor: Cursor = None, limit: Limit = 50
) -> SharePage:
    """List the share links of a run, newest first, with those that ended within the last 90 days."""
    rows, following = await report_shares.list_shares(deps.database, caller.tenant_id, run_id, cursor, limit)
    return SharePage(items=[*map(serialize_share, rows)], next=following)


@router.get("/shares")
async def list_shares(caller: CurrentCaller, deps: Deps, cursor: Cursor = None, limit: Limit = 50) -> SharePage:
    """List the share links of all runs of your tenant, newest first."""
    rows, following = await report_shares.list_shares(deps.database, caller.tenant_id, None, cursor, limit)
    return SharePage(items=[*map(serialize_share, rows)], next=following)


@router.delete("/shares/{share_id}", status_code=204, responses=describe_problems(_404="There is no such link."))
async def revoke_share(caller: CurrentCaller, deps: Deps, share_id: UUID) -> Response:
    """Revoke a share link. It takes effect at once."""
    await report_shares.revoke_share(deps.database, caller.tenant_id, share_id)
    return Response(status_code=204)


@shared_router.get("/{token}", responses=NOT_SHARED)
async def get_shared_report(request: Request, deps: Deps, token: Token) -> SharedReportOut:
    """Read a shared report. This needs no key."""
    with deps.public_limits.admit(_find_address(request)), _explain_ended_link():
        shared = await report_shares.open_shared_report(deps.database, token, is_opening=True)
    analyzed = await reports.analyze_report(shared.read)
    return serialize_shared_report(shared, analyzed.analysis)


@shared_router.get(
    "/{token}/export", response_class=Response, responses=NOT_SHARED | describe_files("md", "html", "docx", "pdf")
)
async def export_shared_report(
    request: Request,
    deps: Deps,
    token: Token,
    format: Annotated[report_shares.SharedFormat, Query(description="The format of the file.")] = "md",
) -> Response:
    """Download a shared report as a file. This needs no key."""
    with deps.public_limits.admit(_find_address(request), FILE_COST), _explain_ended_link():
        exported = await report_shares.export_shared_report(deps.database, deps.report_writer, token, format)
    headers = {"Content-Disposition": describe_attachment(exported)}
    return Response(exported.body, media_type=exported.media_type, headers=headers)


@contextmanager
def _explain_ended_link() -> Generator[None]:
    """Answer every token without a report with the same problem, which says what a reader can do."""
    try:
        yield
    except NotFound:
        detail = "This link does not work: it is not complete, has expired or was revoked."
        remedy = "Check that the address is complete, or ask the person who sent it for a new link."
        raise ProblemError(404, "not_found", detail, remedy) from None


def _find_address(request: Request) -> str:
    return request.client.host if request.client else ""
