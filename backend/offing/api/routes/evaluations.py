"""Routes for reading evaluations of policy versions.

`offing policy evaluate` and `offing loop` create them.
"""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query

from offing.api.auth import CurrentCaller
from offing.api.dependencies import Deps
from offing.api.schemas.promotion import EvaluationPage, serialize_evaluation
from offing.api.strict_route import StrictRoute
from offing.services import policies

router = APIRouter(prefix="/evaluations", tags=["training"], route_class=StrictRoute)


@router.get("")
async def list_evaluations(
    caller: CurrentCaller,
    deps: Deps,
    policy_id: UUID | None = None,
    name: Annotated[str | None, Query(max_length=100, description="Only policies with this name.")] = None,
    cursor: Annotated[UUID | None, Query(description="`next` of the previous page.")] = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> EvaluationPage:
    """List evaluations, newest first."""
    page, following = await policies.list_evaluations(deps.database, caller.tenant_id, policy_id, name, cursor, limit)
    return EvaluationPage(items=[serialize_evaluation(row) for row in page], next=following and str(following))
