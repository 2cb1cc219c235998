"""Routes that change or delete several runs at once. Each run is changed completely or not at all."""

from fastapi import APIRouter

from offing.api import serializers
from offing.api.auth import CurrentCaller
from offing.api.dependencies import Deps
from offing.api.problems import describe_rejection
from offing.api.routes.responses import BODY_TOO_LARGE
from offing.api.schemas.run_changes import (
    RunChangeResultOut,
    RunChangesIn,
    RunChangesOut,
    RunDeletionResultOut,
    RunDeletionsIn,
    RunDeletionsOut,
)
from offing.api.strict_route import StrictRoute
from offing.core.errors import OffingError
from offing.services import run_deletion, run_labels
from offing.services.run_labels import LabelChange

router = APIRouter(prefix="/runs", tags=["runs"], route_class=StrictRoute)


@router.patch("", responses=BODY_TOO_LARGE)
async def change_runs(caller: CurrentCaller, deps: Deps, body: RunChangesIn) -> RunChangesOut:
    """Give up to 200 runs titles and tags, pin and archive them. The response says for each whether it was changed."""
    changes = [(one.run_id, LabelChange(one.title, one.tags, one.pinned, one.archived)) for one in body.changes]
    results = await run_labels.change_labels_of_runs(deps.database, deps.bus, caller.tenant_id, changes)
    return RunChangesOut(
        items=[
            RunChangeResultOut(run_id=run_id, run=None, problem=describe_rejection(result))
            if isinstance(result, OffingError)
            else RunChangeResultOut(run_id=run_id, run=serializers.serialize_run_summary(result), problem=None)
            for (run_id, _), result in zip(changes, results, strict=True)
        ]
    )


@router.post("/deletions", responses=BODY_TOO_LARGE)
async def delete_runs(caller: CurrentCaller, deps: Deps, body: RunDeletionsIn) -> RunDeletionsOut:
    """Delete up to 200 ended runs permanently. The response says for each whether it was deleted."""
    results = await run_deletion.delete_runs(
        deps.database, caller.tenant_id, body.run_ids, with_later_runs=body.later_runs
    )
    return RunDeletionsOut(
        items=[
            RunDeletionResultOut(run_id=run_id, deletion=None, problem=describe_rejection(result))
            if isinstance(result, OffingError)
            else RunDeletionResultOut(run_id=run_id, deletion=serializers.serialize_deletion(result), problem=None)
            for run_id, result in ((run_id, results[run_id]) for run_id in body.run_ids)
        ]
    )
