"""Policy versions: reading them, and which of them new runs get. They are registered beside their files, by command."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query

from offing.api.auth import Known
from offing.api.collecting import PolicyOut, PolicyPage, PolicyStateIn, policy_out
from offing.api.jobs import EventList, event_list
from offing.api.parts import Held
from offing.api.routes.responses import TOO_LARGE, problems
from offing.api.routing import StrictRoute
from offing.api.standing import CanaryIn, PromoteIn, PromotionOut, RollbackOut, verdict_out
from offing.services import policies, promotion
from offing.services.training_gate import Rules

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


@router.get("/{policy_id}/events", responses=NO_POLICY)
async def get_policy_events(
    caller: Known,
    held: Held,
    policy_id: UUID,
    after: Annotated[UUID | None, Query(description="Later ones only.")] = None,
    limit: Annotated[int, Query(ge=1, le=1_000)] = 200,
) -> EventList:
    """What was decided about a version, in order."""
    return event_list(await policies.events(held.database, caller.tenant, policy_id, after, limit))


@router.post(
    "/{policy_id}/promote",
    responses=NO_POLICY | TOO_LARGE | problems(_409="It did not pass the gate, or may not be active."),
)
async def promote_policy(caller: Known, held: Held, policy_id: UUID, wanted: PromoteIn) -> PromotionOut:
    """Make it the active version of its name, if it passes the gate against the one that is; `force`: in any case.

    A version that is served by other machines is made active by `offing policy promote`, which loads it there first.
    """
    row = await policies.one(held.database, caller.tenant, policy_id)
    rules = None if wanted.force else Rules()
    made, verdict = await promotion.promote(held.database, caller.tenant, row.label, rules)
    return PromotionOut(policy=policy_out(made), verdict=verdict_out(verdict))


@router.post(
    "/{policy_id}/canary",
    responses=NO_POLICY | TOO_LARGE | problems(_409="This state may not follow the present one."),
)
async def try_policy(caller: Known, held: Held, policy_id: UUID, wanted: CanaryIn) -> PolicyOut:
    """Let it answer a share of the new runs that name the policy without a version."""
    row = await policies.one(held.database, caller.tenant, policy_id)
    return policy_out(await promotion.try_canary(held.database, caller.tenant, row.label, wanted.share))


@router.post(
    "/{policy_id}/rollback", responses=NO_POLICY | problems(_409="It is not in use, or took over from no version.")
)
async def roll_policy_back(caller: Known, held: Held, policy_id: UUID) -> RollbackOut:
    """Take it back: a canary leaves, an active version gives way to the one that it took over from."""
    return RollbackOut(said=await promotion.take_back(held.database, caller.tenant, policy_id))
