"""Evaluations of policy versions: reading them. `offing policy evaluate` and `offing loop` make them."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query

from offing.api.auth import Known
from offing.api.parts import Held
from offing.api.routing import StrictRoute
from offing.api.standing import EvaluationPage, evaluation_out
from offing.services import policies

router = APIRouter(prefix="/evaluations", tags=["training"], route_class=StrictRoute)


@router.get("")
async def list_evaluations(
    caller: Known,
    held: Held,
    policy_id: UUID | None = None,
    name: Annotated[str | None, Query(max_length=100, description="Of versions of this name.")] = None,
    cursor: Annotated[UUID | None, Query(description="`next` of the page before.")] = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> EvaluationPage:
    """Evaluations, newest first."""
    page, following = await policies.evaluations(held.database, caller.tenant, policy_id, name, cursor, limit)
    return EvaluationPage(items=[evaluation_out(row) for row in page], next=following and str(following))
