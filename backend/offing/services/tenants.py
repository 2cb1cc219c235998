"""The settings of a tenant."""

from dataclasses import dataclass
from decimal import Decimal
from uuid import UUID

from offing.services.presets import get_preset
from offing.storage import tenants
from offing.storage.pool import Database
from offing.storage.tenants import TenantRow


@dataclass(frozen=True, slots=True)
class UnsetType:
    """The type of `UNSET`, which marks a setting that a request leaves unchanged."""


UNSET = UnsetType()


async def get_tenant(database: Database, tenant_id: UUID) -> TenantRow:
    async with database.transaction(tenant_id) as connection:
        return await tenants.get_tenant(connection, tenant_id)


async def update_tenant(
    database: Database,
    tenant_id: UUID,
    *,
    training_opt_in: bool | UnsetType = UNSET,
    max_daily_spend_usd: Decimal | UnsetType | None = UNSET,
    default_preset: str | UnsetType | None = UNSET,
) -> TenantRow:
    """Update the settings that are given. `None` removes the limit, and the default preset.

    Raises InvalidInput if there is no such preset.
    """
    if isinstance(default_preset, str):
        await get_preset(database, tenant_id, default_preset)
    async with database.transaction(tenant_id) as connection:
        if not isinstance(training_opt_in, UnsetType):
            await tenants.set_training_opt_in(connection, tenant_id, training_opt_in)
        if not isinstance(max_daily_spend_usd, UnsetType):
            await tenants.set_max_daily_spend(connection, tenant_id, max_daily_spend_usd)
        if not isinstance(default_preset, UnsetType):
            await tenants.set_default_preset(connection, tenant_id, default_preset)
        return await tenants.get_tenant(connection, tenant_id)
