"""Routes for policy versions and their states.

Versions are registered by command on the machine that has the files.
"""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query

from offing.api.auth import CurrentCaller
from offing.api.dependencies import Deps
from offing.api.routes.responses import BODY_TOO_LARGE, describe_problems
from offing.api.schemas.promotion import (
    CanaryIn,
    PromoteIn,
    PromotionOut,
    RollbackOut,
    build_gate_rules,
    serialize_gate_result,
)
from offing.api.schemas.rollouts import (
    PolicyVersionOut,
    PolicyVersionPage,
    PolicyVersionStateIn,
    serialize_policy_version,
)
from offing.api.schemas.training_jobs import TrainingEventList, serialize_events
from offing.api.strict_route import StrictRoute
from offing.services import policies, promotion

router = APIRouter(prefix="/policy-versions", tags=["collection"], route_class=StrictRoute)

VERSION_NOT_FOUND = describe_problems(_404="There is no such policy version.")


@router.get("")
async def list_policy_versions(
    caller: CurrentCaller,
    deps: Deps,
    name: Annotated[str | None, Query(max_length=100)] = None,
    cursor: Annotated[UUID | None, Query(description="`next` of the previous page.")] = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> PolicyVersionPage:
    """List policy versions, newest first."""
    page, following = await policies.list_versions(deps.database, caller.tenant_id, name, cursor, limit)
    return PolicyVersionPage(
        items=[serialize_policy_version(version) for version in page], next=following and str(following)
    )


@router.get("/{policy_id}", responses=VERSION_NOT_FOUND)
async def get_policy_version(caller: CurrentCaller, deps: Deps, policy_id: UUID) -> PolicyVersionOut:
    """Get a policy version."""
    return serialize_policy_version(await policies.get_version(deps.database, caller.tenant_id, policy_id))


@router.post(
    "/{policy_id}/state",
    responses=VERSION_NOT_FOUND | BODY_TOO_LARGE | describe_problems(_409="The version cannot change to this state."),
)
async def set_policy_version_state(
    caller: CurrentCaller, deps: Deps, policy_id: UUID, body: PolicyVersionStateIn
) -> PolicyVersionOut:
    """Change the state of a policy version.

    Activating a version retires the active one; `blocked` is permanent.
    """
    return serialize_policy_version(
        await policies.set_version_state(deps.database, caller.tenant_id, policy_id, body.state)
    )


@router.get("/{policy_id}/events", responses=VERSION_NOT_FOUND)
async def list_policy_version_events(
    caller: CurrentCaller,
    deps: Deps,
    policy_id: UUID,
    after: Annotated[UUID | None, Query(description="Return only events after this one.")] = None,
    limit: Annotated[int, Query(ge=1, le=1_000)] = 200,
) -> TrainingEventList:
    """List the decisions about a policy version, in order."""
    return serialize_events(await policies.list_events(deps.database, caller.tenant_id, policy_id, after, limit))


@router.post(
    "/{policy_id}/promote",
    responses=VERSION_NOT_FOUND
    | BODY_TOO_LARGE
    | describe_problems(_409="The version did not pass the gate, or cannot become active."),
)
async def promote_policy_version(caller: CurrentCaller, deps: Deps, policy_id: UUID, body: PromoteIn) -> PromotionOut:
    """Promote a policy version if it passes the promotion gate against the active version.

    `force` skips the gate, and `by_canary` replaces it by what the canary has shown.

    Use `offing policy promote` for a version that other machines serve; the command loads it there first.
    """
    row = await policies.get_version(deps.database, caller.tenant_id, policy_id)
    rules = None if body.force else build_gate_rules(body)
    promoted, verdict = await promotion.promote(
        deps.database, caller.tenant_id, row.label, rules, by_canary=body.by_canary
    )
    return PromotionOut(policy_version=serialize_policy_version(promoted), gate_result=serialize_gate_result(verdict))


@router.post(
    "/{policy_id}/canary",
    responses=VERSION_NOT_FOUND | BODY_TOO_LARGE | describe_problems(_409="The version cannot become a canary."),
)
async def start_canary(caller: CurrentCaller, deps: Deps, policy_id: UUID, body: CanaryIn) -> PolicyVersionOut:
    """Start a canary: the version answers a fraction of the new runs that name the policy without a version."""
    row = await policies.get_version(deps.database, caller.tenant_id, policy_id)
    return serialize_policy_version(
        await promotion.start_canary(deps.database, caller.tenant_id, row.label, body.fraction)
    )


@router.post(
    "/{policy_id}/rollback",
    responses=VERSION_NOT_FOUND
    | describe_problems(_409="The version is neither active nor a canary, or there is no previous active version."),
)
async def roll_back_policy_version(caller: CurrentCaller, deps: Deps, policy_id: UUID) -> RollbackOut:
    """Roll a policy version back: end its canary, or make the previously active version active again."""
    return RollbackOut(message=await promotion.withdraw_version(deps.database, caller.tenant_id, policy_id))
