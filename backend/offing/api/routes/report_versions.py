"""Routes for the versions of a report that people save, and for the passages that they may cite."""

from dataclasses import asdict
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Path, Query

from offing.api import serializers
from offing.api.auth import CurrentCaller
from offing.api.dependencies import Deps
from offing.api.routes.responses import BODY_TOO_LARGE, RUN_NOT_FOUND, describe_problems
from offing.api.schemas import report_versions as schemas
from offing.api.schemas.reports import ReportChangesOut, ReportOut
from offing.api.strict_route import StrictRoute
from offing.services import report_versions
from offing.services.report_versions import NewVersion
from offing.telemetry.redaction import remove_secrets

router = APIRouter(prefix="/runs/{run_id}", tags=["reports"], route_class=StrictRoute)

VERSION_NOT_FOUND = describe_problems(_404="There is no such run, or it has no such version of a report.")
CANNOT_SAVE = describe_problems(
    _409="Someone has saved a version that you have not seen, the run has not ended, or no person started it."
)

Version = Annotated[int, Path(ge=1, le=2**31 - 1)]


@router.get("/report/versions", responses=RUN_NOT_FOUND)
async def list_report_versions(
    caller: CurrentCaller,
    deps: Deps,
    run_id: UUID,
    before: Annotated[
        int | None, Query(ge=1, le=2**31 - 1, description="Only versions before this one. Absent: from the newest.")
    ] = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> schemas.ReportVersionPage:
    """List the versions of the report, newest first. `GET /runs/{run_id}/report?version=` gets one of them."""
    rows = await report_versions.list_versions(deps.database, caller.tenant_id, run_id, before, limit + 1)
    return schemas.ReportVersionPage(
        items=[schemas.serialize_version(row) for row in rows[:limit]],
        next=str(rows[limit - 1].version) if len(rows) > limit else None,
    )


@router.post("/report/versions", status_code=201, responses=VERSION_NOT_FOUND | CANNOT_SAVE | BODY_TOO_LARGE)
async def save_report_version(caller: CurrentCaller, deps: Deps, run_id: UUID, body: schemas.ReportEditIn) -> ReportOut:
    """Save an edited report as the next version. Each citation must point to words that the run has read."""
    latest, note = body.latest_version or body.base_version, remove_secrets(body.note.strip())
    new = NewVersion(caller.name, body.base_version, latest, note)
    stored = await report_versions.save_edit(
        deps.database, deps.bus, caller.tenant_id, run_id, schemas.edit_from_request(body), new
    )
    return serializers.serialize_report(run_id, stored)


@router.post(
    "/report/versions/{version}/restore", status_code=201, responses=VERSION_NOT_FOUND | CANNOT_SAVE | BODY_TOO_LARGE
)
async def restore_report_version(
    caller: CurrentCaller, deps: Deps, run_id: UUID, version: Version, body: schemas.RestoreIn
) -> ReportOut:
    """Restore an earlier version as the next one. The versions between them stay."""
    new = NewVersion(caller.name, version, body.latest_version, remove_secrets(body.note.strip()))
    stored = await report_versions.restore_version(deps.database, deps.bus, caller.tenant_id, run_id, new)
    return serializers.serialize_report(run_id, stored)


@router.get("/report/changes", responses=VERSION_NOT_FOUND)
async def compare_report_versions(
    caller: CurrentCaller,
    deps: Deps,
    run_id: UUID,
    old: Annotated[int, Query(ge=1, le=2**31 - 1, description="The version to compare with.")],
    new: Annotated[int, Query(ge=1, le=2**31 - 1)],
) -> ReportChangesOut:
    """List the differences of version `new` from version `old`, by section and sentence."""
    changes = await report_versions.compare_versions(deps.database, caller.tenant_id, run_id, old, new)
    return ReportChangesOut.model_validate(asdict(changes))


@router.get("/evidence", responses=RUN_NOT_FOUND)
async def list_evidence(
    caller: CurrentCaller,
    deps: Deps,
    run_id: UUID,
    q: Annotated[str, Query(max_length=500, description="Only passages that have all of these words.")] = "",
    after: Annotated[int, Query(ge=0, le=2**31 - 1, description="`next` of the page before.")] = 0,
    limit: Annotated[int, Query(ge=1, le=100)] = 20,
) -> schemas.EvidencePassagePage:
    """List the passages that the run has read and that its report may cite, in the order in which it read them."""
    page = await report_versions.list_evidence(deps.database, caller.tenant_id, run_id, q, after, limit)
    return schemas.EvidencePassagePage(
        items=[schemas.serialize_passage(one) for one in page.passages],
        next=None if page.next_position is None else str(page.next_position),
    )
