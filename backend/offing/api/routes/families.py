"""Which run started which."""

from uuid import UUID

from fastapi import APIRouter

from offing.api.auth import Known
from offing.api.families import FamilyOut, family_out
from offing.api.parts import Held
from offing.api.routes.responses import NO_RUN
from offing.api.routing import StrictRoute
from offing.services import child_runs

router = APIRouter(prefix="/runs", tags=["runs"], route_class=StrictRoute)


@router.get("/{run_id}/family", responses=NO_RUN)
async def get_family(caller: Known, held: Held, run_id: UUID) -> FamilyOut:
    """The runs that a run has started, and the one that started it."""
    return family_out(await child_runs.family(held.database, caller.tenant, run_id))
