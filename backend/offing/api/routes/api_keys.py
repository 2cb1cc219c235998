"""Routes for API keys. Only a person in the web UI may create or revoke one."""

from datetime import timedelta
from typing import Annotated

from fastapi import APIRouter, Path, Response

from offing.api.auth import CurrentCaller, CurrentPerson
from offing.api.dependencies import Deps
from offing.api.routes.responses import BODY_TOO_LARGE, describe_problems
from offing.api.schemas.installation import ApiKeyIn, ApiKeyOut, NewApiKeyOut, serialize_key
from offing.api.strict_route import StrictRoute
from offing.services import access

router = APIRouter(prefix="/api-keys", tags=["API keys"], route_class=StrictRoute)

KeyId = Annotated[str, Path(max_length=64, description="Id of the key: what is between the underscores.")]


@router.get("")
async def list_api_keys(caller: CurrentCaller, deps: Deps) -> list[ApiKeyOut]:
    """List your tenant's API keys without their secrets, including revoked ones, oldest first. At most 1,000."""
    return [serialize_key(row) for row in await access.list_keys(deps.database, caller.tenant_id)]


@router.post("", status_code=201, responses=BODY_TOO_LARGE | describe_problems(_409="There are too many valid keys."))
async def create_api_key(caller: CurrentPerson, deps: Deps, body: ApiKeyIn, response: Response) -> NewApiKeyOut:
    """Create an API key of your tenant. The response is the only one with its secret. Not with an API key."""
    ttl = None if body.expires_in_days is None else timedelta(days=body.expires_in_days)
    created = await access.create_key(deps.database, caller.tenant_id, body.name, ttl=ttl)
    response.headers["Cache-Control"] = "no-store"
    return NewApiKeyOut(id=created.id, key=created.key)


@router.delete("/{key_id}", status_code=204, responses=describe_problems(_404="There is no such key."))
async def revoke_api_key(caller: CurrentPerson, deps: Deps, key_id: KeyId) -> Response:
    """Revoke an API key permanently. Requests with it fail within 5 seconds. Not with an API key."""
    await access.revoke_key(deps.database, caller.tenant_id, key_id)
    return Response(status_code=204)
