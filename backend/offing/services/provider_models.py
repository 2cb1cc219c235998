"""The models of a tenant's stored provider."""

from collections.abc import Mapping
from uuid import UUID

from offing import environment
from offing.core.errors import Conflict
from offing.core.model import EngineFailure
from offing.models.provider_models import ModelList, list_models
from offing.services.providers import decrypt_provider
from offing.storage import providers
from offing.storage.pool import Database
from offing.telemetry.redaction import bind_secrets, remember_secret


async def list_provider_models(
    database: Database, tenant_id: UUID, name: str, env: Mapping[str, str] = environment.VARIABLES
) -> ModelList:
    """Return the models of a stored provider. Raises NotFound, and Conflict if its key cannot be decrypted."""
    async with database.transaction(tenant_id) as connection:
        row = await providers.get_provider(connection, name)
    with bind_secrets():
        provider = decrypt_provider(tenant_id, row, env)
        if isinstance(provider, EngineFailure):
            raise Conflict(provider.message, "Then list the models again.")
        remember_secret(provider.api_key)
        return await list_models(provider, env)
