"""Routes for input requests of a run and the responses to them."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Path

from offing.api.auth import CurrentCaller
from offing.api.dependencies import Deps
from offing.api.routes.responses import BODY_TOO_LARGE, RUN_NOT_FOUND, describe_problems
from offing.api.schemas.input_requests import (
    InputRequestList,
    InputRequestOut,
    InputResponseIn,
    build_input_response,
    check_decisions,
    find_missing_field,
    serialize_input_request,
)
from offing.api.strict_route import StrictRoute
from offing.core.errors import InvalidInput
from offing.services import input_requests
from offing.services.input_requests import InputRequestStatus

router = APIRouter(prefix="/runs", tags=["runs"], route_class=StrictRoute)

RequestNumber = Annotated[int, Path(ge=1, le=2**62, description="Seq of the step with the input request.")]


@router.get("/{run_id}/input-requests", responses=RUN_NOT_FOUND)
async def list_input_requests(caller: CurrentCaller, deps: Deps, run_id: UUID) -> InputRequestList:
    """List the input requests of a run, oldest first, with their responses."""
    pending = await input_requests.list_input_requests(deps.database, caller.tenant_id, run_id)
    return InputRequestList(items=[serialize_input_request(request) for request in pending])


@router.post(
    "/{run_id}/input-requests/{number}/response",
    responses=describe_problems(
        _404="There is no such run or input request.",
        _409="The input request already has a response, or the run has ended.",
    )
    | BODY_TOO_LARGE,
)
async def respond_to_input_request(
    caller: CurrentCaller, deps: Deps, run_id: UUID, number: RequestNumber, body: InputResponseIn
) -> InputRequestOut:
    """Respond to an input request. The first response counts, and a waiting run continues."""
    asking = (await input_requests.get_input_request(deps.database, caller.tenant_id, run_id, number)).input_prompt
    if field := find_missing_field(asking, body):
        raise InvalidInput(field, f"is required for an input request of kind {asking.kind}", "Add the missing field.")
    check_decisions(asking, body)
    answered = await input_requests.submit_response(
        deps.database,
        deps.notifier,
        caller.tenant_id,
        run_id,
        number,
        build_input_response(body),
        responded_by=caller.name,
    )
    return serialize_input_request(InputRequestStatus(answered, False))
