"""Routes for the model providers of a tenant, and for presets."""

from decimal import Decimal
from typing import Annotated

from fastapi import APIRouter, Path, Query, Response

from offing import environment
from offing.api.auth import CurrentCaller
from offing.api.dependencies import Deps
from offing.api.routes.responses import BODY_TOO_LARGE, describe_problems
from offing.api.schemas.providers import (
    PresetIn,
    PresetOut,
    ProviderIn,
    ProviderKindOut,
    ProviderModelListOut,
    ProviderOut,
    ProviderTestIn,
    ProviderTestOut,
    build_preset,
    serialize_models,
    serialize_preset,
    serialize_provider,
    serialize_provider_kind,
)
from offing.api.strict_route import StrictRoute
from offing.models import provider_kinds
from offing.services import presets, provider_models, provider_trial, providers
from offing.services.providers import ProviderRequest

router = APIRouter(tags=["providers"], route_class=StrictRoute)

Name = Annotated[str, Path(max_length=64, description="Name of the provider.")]
PresetName = Annotated[str, Path(max_length=64, description="Name of the preset.")]

Search = Annotated[str, Query(max_length=200, description="Words that the names of the models contain.")]

PROVIDER_NOT_FOUND = describe_problems(_404="There is no such provider.")
KEY_FILE_CONFLICT = describe_problems(_409="The key file of this installation cannot be used.")


@router.get("/providers")
async def list_providers(caller: CurrentCaller, deps: Deps) -> list[ProviderOut]:
    """List your tenant's providers, without their keys."""
    return [serialize_provider(row) for row in await providers.list_providers(deps.database, caller.tenant_id)]


@router.get("/providers/{name}", responses=PROVIDER_NOT_FOUND)
async def get_provider(caller: CurrentCaller, deps: Deps, name: Name) -> ProviderOut:
    """Get a provider without its key."""
    return serialize_provider(await providers.get_provider(deps.database, caller.tenant_id, name))


@router.put("/providers/{name}", responses=BODY_TOO_LARGE | KEY_FILE_CONFLICT)
async def put_provider(caller: CurrentCaller, deps: Deps, name: Name, body: ProviderIn) -> ProviderOut:
    """Create or replace a provider. Its key is encrypted, and is sent only to the address stored with it."""
    key = None if body.key is None else body.key.get_secret_value()
    request = ProviderRequest(name, body.provider, body.api_base, key, body.max_concurrent_calls)
    return serialize_provider(await providers.put_provider(deps.database, caller.tenant_id, request))


@router.delete("/providers/{name}", status_code=204, responses=PROVIDER_NOT_FOUND)
async def delete_provider(caller: CurrentCaller, deps: Deps, name: Name) -> Response:
    """Delete a provider with its key. Workers stop using the key within 10 seconds."""
    await providers.delete_provider(deps.database, caller.tenant_id, name)
    return Response(status_code=204)


@router.post(
    "/providers/{name}/test",
    responses=BODY_TOO_LARGE | PROVIDER_NOT_FOUND | describe_problems(_409="The provider cannot be called."),
)
async def run_provider_test(caller: CurrentCaller, deps: Deps, name: Name, body: ProviderTestIn) -> ProviderTestOut:
    """Try what a model can do, with one short call each, and store the result. Takes at most about 100 seconds."""
    cap = Decimal(str(body.max_cost_usd))
    result = await provider_trial.run_provider_test(deps.database, caller.tenant_id, name, body.model, cap)
    return ProviderTestOut.model_validate(result)


@router.get("/providers/{name}/models", responses=PROVIDER_NOT_FOUND | KEY_FILE_CONFLICT)
async def list_provider_models(caller: CurrentCaller, deps: Deps, name: Name, q: Search = "") -> ProviderModelListOut:
    """List the models of a provider, with what litellm knows about each. A server of your own is asked for them."""
    return serialize_models(await provider_models.list_provider_models(deps.database, caller.tenant_id, name), q)


@router.get("/provider-kinds")
async def list_provider_kinds(caller: CurrentCaller) -> list[ProviderKindOut]:
    """List the providers that can be stored, and what each of them needs."""
    return [serialize_provider_kind(kind) for kind in provider_kinds.list_provider_kinds(environment.VARIABLES)]


@router.get("/presets")
async def list_presets(caller: CurrentCaller, deps: Deps) -> list[PresetOut]:
    """List the presets that runs can name: your tenant's own ones, and those that the configured providers allow."""
    return [serialize_preset(preset) for preset in await presets.list_presets(deps.database, caller.tenant_id)]


@router.put("/presets/{name}", responses=BODY_TOO_LARGE)
async def put_preset(caller: CurrentCaller, deps: Deps, name: PresetName, body: PresetIn) -> PresetOut:
    """Create or replace a preset of your tenant."""
    stored = await presets.put_preset(deps.database, caller.tenant_id, build_preset(name, body))
    return serialize_preset(stored)


@router.delete("/presets/{name}", status_code=204, responses=describe_problems(_404="There is no such preset."))
async def delete_preset(caller: CurrentCaller, deps: Deps, name: PresetName) -> Response:
    """Delete a preset of your tenant. A built-in preset of the same name takes effect again."""
    await presets.delete_preset(deps.database, caller.tenant_id, name)
    return Response(status_code=204)
