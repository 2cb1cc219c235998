"""Policy versions: reading them, and changing their state. They are registered beside their files, by command."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query

from offing.api.auth import Known
from offing.api.collecting import PolicyOut, PolicyPage, PolicyStateIn, policy_out
from offing.api.parts import Held
from offing.api.routes.responses import TOO_LARGE, problems
from offing.api.strict import StrictRoute
from offing.services import policies

router = APIRouter(prefix="/policies", tags=["collection"], route_class=StrictRoute)

NO_POLICY = problems(_404="There is no such policy version.")


@router.get("")
async def list_policies(
    caller: Known,
    held: Held,
    name: Annotated[str | None, Query(max_length=100)] = None,
    cursor: Annotated[UUID | None, Query(description="`next` of the page before.")] = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> PolicyPage:
    """Policy versions, newest first."""
    page, following = await policies.page(held.database, caller.tenant, name, cursor, limit)
    return PolicyPage(items=[policy_out(version) for version in page], next=following and str(following))


@router.get("/{policy_id}", responses=NO_POLICY)
async def get_policy(caller: Known, held: Held, policy_id: UUID) -> PolicyOut:
    """One policy version."""
    return policy_out(await policies.one(held.database, caller.tenant, policy_id))


@router.post(
    "/{policy_id}/state",
    responses=NO_POLICY | TOO_LARGE | problems(_409="This state may not follow the present one."),
)
async def change_policy_state(caller: Known, held: Held, policy_id: UUID, wanted: PolicyStateIn) -> PolicyOut:
    """Move it to another state. Making one active retires the active one of its name; `bad` is for good."""
    return policy_out(await policies.change_state(held.database, caller.tenant, policy_id, wanted.state))
